/* Carries out work on compiled kernels, on a processor that is emulated: tests/support/emulated.py writes the file that it reads.

   run FILE >RESULTS: all numbers are 64 bits; bytes are padded to 8.
     work    := n_buffers buffer* n_steps step* n_outputs number*
     buffer  := kind (0: ends at a page that cannot be touched, 1: 64 aligned, with spare bytes behind) size has_data [bytes]
     step    := path symbol n_buffers (number offset)* n_params value* n_ranges (begin end)*       text := size bytes
   Results are the bytes of the outputs, one after the other. What goes wrong is a line on stderr and status 1; before each step
   a line says which it is, so that a step that ends the process is known. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD_BYTES = 256, SPARE_BYTES = 64, GUARD = 0xA5, POISON = 0xFF };

typedef void kernel(void *const *, const int64_t *, int64_t, int64_t);

struct buffer {
  int64_t kind, size;
  unsigned char *data, *map; /* guards lie from `map` to `data` */
  int64_t mapped, before;
};

static const unsigned char *at, *end;

static _Noreturn void fail(const char *what, const char *more) {
  fprintf(stderr, "problem: %s%s\n", what, more ? more : "");
  exit(1);
}

static const void *take(int64_t size) {
  const void *taken = at;
  if (size < 0 || size > end - at) fail("the file ends too early", 0);
  at += (size + 7) & ~(int64_t)7;
  return taken;
}

static int64_t number(void) { return *(const int64_t *)take(8); }

static const char *text(void) { return take(number()); }

static void *some(int64_t count, size_t each) {
  void *room = calloc(count > 0 ? count : 1, each);
  if (!room) fail("no memory", 0);
  return room;
}

static void make(struct buffer *b) {
  int64_t page = sysconf(_SC_PAGESIZE), behind = b->kind ? SPARE_BYTES + GUARD_BYTES + 64 : 0;
  int64_t room = (b->size + behind + GUARD_BYTES + page - 1) / page * page;
  b->mapped = room + page;
  b->map = mmap(0, b->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (b->map == MAP_FAILED || mprotect(b->map + room, page, PROT_NONE)) fail("no memory", 0);
  memset(b->map, GUARD, room);
  b->before = room - b->size - behind;
  if (b->kind) b->before = b->before / 64 * 64;
  b->data = b->map + b->before;
  memset(b->data, POISON, b->size + (b->kind ? SPARE_BYTES : 0));
}

static int all(const unsigned char *from, const unsigned char *to, int value) {
  while (from < to)
    if (*from++ != value) return 0;
  return 1;
}

static void look(const struct buffer *b) {
  const unsigned char *behind = b->data + b->size, *last = b->map + b->mapped - sysconf(_SC_PAGESIZE);
  if (!all(b->map, b->data, GUARD)) fail("a buffer was written in front of its first byte", 0);
  if (!b->kind) return;
  if (!all(behind, behind + SPARE_BYTES, POISON)) fail("a buffer was written behind its last byte", 0);
  if (!all(behind + SPARE_BYTES, last, GUARD)) fail("a buffer was written far outside", 0);
}

static void step(struct buffer *buffers, int64_t n_buffers) {
  const char *path = text(), *symbol = text();
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail("dlopen: ", dlerror());
  kernel *function = (kernel *)dlsym(library, symbol);
  if (!function) fail("dlsym: ", dlerror());
  int64_t n = number();
  void **addresses = some(n, sizeof *addresses);
  struct buffer **used = some(n, sizeof *used);
  for (int64_t i = 0; i < n; i++) {
    int64_t which = number();
    if (which < 0 || which >= n_buffers) fail("no such buffer", 0);
    used[i] = &buffers[which];
    addresses[i] = used[i]->data + number();
  }
  int64_t n_params = number();
  const int64_t *params = take(8 * n_params);
  int64_t n_ranges = number();
  for (int64_t i = 0; i < n_ranges; i++) {
    int64_t begin = number(), stop = number();
    function(addresses, params, begin, stop);
  }
  for (int64_t i = 0; i < n; i++) look(used[i]);
  free(addresses);
  free(used);
}

static void work(void) {
  int64_t n_buffers = number();
  struct buffer *buffers = some(n_buffers, sizeof *buffers);
  for (int64_t i = 0; i < n_buffers; i++) {
    buffers[i].kind = number();
    buffers[i].size = number();
    make(&buffers[i]);
    if (number()) memcpy(buffers[i].data, take(buffers[i].size), buffers[i].size);
  }
  int64_t n_steps = number();
  for (int64_t i = 0; i < n_steps; i++) {
    fprintf(stderr, "step\n");
    step(buffers, n_buffers);
  }
  int64_t n_outputs = number();
  for (int64_t i = 0; i < n_outputs; i++) {
    const struct buffer *b = &buffers[number()];
    if (fwrite(b->data, 1, b->size, stdout) != (size_t)b->size) fail("cannot write", 0);
  }
  for (int64_t i = 0; i < n_buffers; i++) munmap(buffers[i].map, buffers[i].mapped);
  free(buffers);
}

int main(int argc, char **argv) {
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : 0;
  if (!file || fseek(file, 0, SEEK_END)) fail("no such file", 0);
  int64_t size = ftell(file);
  rewind(file);
  unsigned char *bytes = some(size, 1);
  if (fread(bytes, 1, size, file) != (size_t)size) fail("cannot read", 0);
  at = bytes, end = bytes + size;
  while (at < end) work();
  return fflush(stdout) ? 1 : 0;
}
