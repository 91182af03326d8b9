/* Stands in the place of the system's OpenCL loader (libOpenCL.so.1 in LD_LIBRARY_PATH) and passes every call on to the one that
 * FAULTY_OPENCL_REAL names, but those that a test has told to fail. All arguments of OpenCL are integers or pointers, and nine
 * are passed on whatever a function takes: both calling conventions that we run on allow that. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

typedef long Word;
typedef Word (*Call)(Word, Word, Word, Word, Word, Word, Word, Word, Word);

static const char *failing = "";
static int failing_code, lasting;
static long calls;

/* The next call of `name` returns `code` and is not passed on; with `lasts`, each one does. */
API void faulty_opencl_fail(const char *name, int code, int lasts) {
  failing = name;
  failing_code = code;
  lasting = lasts;
}

API long faulty_opencl_calls(void) { return calls; }

static Call real(const char *name) {
  static void *library;
  if (library == NULL) library = dlopen(getenv("FAULTY_OPENCL_REAL"), RTLD_NOW | RTLD_LOCAL);
  return library != NULL ? (Call)dlsym(library, name) : NULL;
}

static int fails(const char *name) {
  calls += 1;
  if (strcmp(name, failing) != 0) return 0;
  if (!lasting) failing = "";
  return 1;
}

#define PASS_ON(name)                                                                       \
  API Word name(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i) { \
    if (fails(#name)) return failing_code;                                                  \
    return real(#name)(a, b, c, d, e, f, g, h, i);                                          \
  }
/* The same of those that return an object, and the error through their `last` argument. */
#define PASS_ON_MAKING(name, last)                                                          \
  API Word name(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i) { \
    if (fails(#name)) return *(int *)last = failing_code, 0;                                \
    return real(#name)(a, b, c, d, e, f, g, h, i);                                          \
  }

PASS_ON(clGetPlatformIDs)
PASS_ON(clGetPlatformInfo)
PASS_ON(clGetDeviceIDs)
PASS_ON(clGetDeviceInfo)
PASS_ON_MAKING(clCreateContext, f)
PASS_ON_MAKING(clCreateCommandQueue, d)
PASS_ON(clReleaseCommandQueue)
PASS_ON_MAKING(clCreateBuffer, e)
PASS_ON_MAKING(clCreateSubBuffer, e)
PASS_ON(clReleaseMemObject)
PASS_ON_MAKING(clCreateProgramWithSource, e)
PASS_ON_MAKING(clCreateProgramWithBinary, g)
PASS_ON(clBuildProgram)
PASS_ON(clGetProgramInfo)
PASS_ON(clGetProgramBuildInfo)
PASS_ON(clReleaseProgram)
PASS_ON_MAKING(clCreateKernel, c)
PASS_ON(clCreateKernelsInProgram)
PASS_ON(clGetKernelInfo)
PASS_ON(clGetKernelArgInfo)
PASS_ON(clGetKernelWorkGroupInfo)
PASS_ON(clSetKernelArg)
PASS_ON(clReleaseKernel)
PASS_ON(clEnqueueWriteBuffer)
PASS_ON(clEnqueueReadBuffer)
PASS_ON(clEnqueueNDRangeKernel)
PASS_ON(clFinish)
PASS_ON(clGetEventProfilingInfo)
PASS_ON(clReleaseEvent)
