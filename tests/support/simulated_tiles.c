// Matrix tiles in plain C, for processors without them: see simulated.py. Kernels that are linked together have one state.

__attribute__((weak)) struct { int rows[8], bytes[8]; unsigned char data[8][16][64]; } xy_tile_state;

static inline void xy_tile_need(int holds) { if (!holds) __builtin_trap(); }

static void xy_tile_release(void) { __builtin_memset(&xy_tile_state, 0, sizeof xy_tile_state); }

static void xy_tile_configure(const void *shapes) {
  const unsigned char *s = (const unsigned char *)shapes;
  xy_tile_release();
  xy_tile_need(s[0] == 1 && s[1] == 0);
  for (int i = 0; i < 8; i++) {
    xy_tile_state.bytes[i] = s[16 + 2 * i] | s[17 + 2 * i] << 8;
    xy_tile_state.rows[i] = s[48 + i];
    xy_tile_need(xy_tile_state.rows[i] <= 16 && xy_tile_state.bytes[i] <= 64);
  }
}

static void xy_tile_zero(int tile) {
  xy_tile_need(xy_tile_state.rows[tile] > 0);
  __builtin_memset(xy_tile_state.data[tile], 0, sizeof xy_tile_state.data[tile]);
}

static void xy_tile_load(int tile, const void *from, long long step) {
  xy_tile_zero(tile);
  for (int i = 0; i < xy_tile_state.rows[tile]; i++)
    __builtin_memcpy(xy_tile_state.data[tile][i], (const char *)from + i * step, (unsigned)xy_tile_state.bytes[tile]);
}

static void xy_tile_store(int tile, void *to, long long step) {
  xy_tile_need(xy_tile_state.rows[tile] > 0);
  for (int i = 0; i < xy_tile_state.rows[tile]; i++)
    __builtin_memcpy((char *)to + i * step, xy_tile_state.data[tile][i], (unsigned)xy_tile_state.bytes[tile]);
}

static void xy_tile_fits(int c, int a, int b) {
  xy_tile_need(c != a && c != b && a != b && xy_tile_state.rows[c] > 0 && xy_tile_state.rows[c] == xy_tile_state.rows[a]);
  xy_tile_need(xy_tile_state.bytes[c] == xy_tile_state.bytes[b] && xy_tile_state.bytes[a] == 4 * xy_tile_state.rows[b]);
}

// Words of a are unsigned bytes, those of b signed ones; sums wrap.
static void xy_tdpbusd(int c, int a, int b) {
  xy_tile_fits(c, a, b);
  for (int m = 0; m < xy_tile_state.rows[c]; m++) {
    unsigned sums[16];
    __builtin_memcpy(sums, xy_tile_state.data[c][m], 64);
    for (int k = 0; k < xy_tile_state.rows[b]; k++)
      for (int n = 0; n < xy_tile_state.bytes[c] / 4; n++)
        for (int i = 0; i < 4; i++) {
          const int x = xy_tile_state.data[a][m][4 * k + i], y = (signed char)xy_tile_state.data[b][k][4 * n + i];
          sums[n] += (unsigned)(x * y);
        }
    __builtin_memcpy(xy_tile_state.data[c][m], sums, 64);
  }
}

static inline float xy_tile_float(const unsigned char *p) {
  const unsigned bits = (unsigned)p[0] << 16 | (unsigned)p[1] << 24;
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

// The first and the second of the pairs are summed up apart, then added. Numbers too small for a normal float do not count as 0.
static void xy_tdpbf16ps(int c, int a, int b) {
  xy_tile_fits(c, a, b);
  for (int m = 0; m < xy_tile_state.rows[c]; m++) {
    float sums[16], parts[2][16] = {{0}};
    __builtin_memcpy(sums, xy_tile_state.data[c][m], 64);
    for (int k = 0; k < xy_tile_state.rows[b]; k++)
      for (int n = 0; n < xy_tile_state.bytes[c] / 4; n++)
        for (int i = 0; i < 2; i++) {
          const float x = xy_tile_float(xy_tile_state.data[a][m] + 4 * k + 2 * i);
          parts[i][n] = __builtin_fmaf(x, xy_tile_float(xy_tile_state.data[b][k] + 4 * n + 2 * i), parts[i][n]);
        }
    for (int n = 0; n < 16; n++) sums[n] += parts[0][n] + parts[1][n];
    __builtin_memcpy(xy_tile_state.data[c][m], sums, 64);
  }
}
