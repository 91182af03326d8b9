"""In which order a plan's steps come: images in a loop, independent steps side by side."""
