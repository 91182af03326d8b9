"""Models in browsers: a folder of static files with a plan, weights, kernels and a page (docs/web.md)."""
