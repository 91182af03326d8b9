"""The fake planner of tests/native serves here too."""

from tests.native.conftest import kernel_folder, make_session, planner

__all__ = ["kernel_folder", "make_session", "planner"]
