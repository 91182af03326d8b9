// What to do when Python ends while this library still runs (xyntra_ep/ending.py). When Python goes, it ends a thread of its own as
// soon as that wants back. Such a thread, coming from here, has frames of ONNX Runtime on its stack which cannot be unwound: the
// process would abort. So it stays here, and the process ends without it. Threads that are not Python's go on.
#pragma once

namespace xyntra {

// Told by the thread that ends Python, before it does. `is_going`: whether it has begun (Py_IsFinalizing); `python_thread`: null
// for a thread that is not Python's (PyGILState_GetThisThreadState). Both work without Python's lock, and when Python has gone.
void python_ends(int (*is_going)(), void* (*python_thread)()) noexcept;

// Before a thread leaves for ONNX Runtime. Costs the look at one pointer while Python lives.
void stay_if_python_goes() noexcept;

// For a thread that Python has already ended.
[[noreturn]] void stay() noexcept;

}  // namespace xyntra
