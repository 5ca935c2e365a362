/* Runs networks for ARM: reads what tests/arm.py writes, calls functions of an object file, writes memory back. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 4096, MOST_TENSORS = 64 }; /* bytes in front of and behind memory that kernels may read */

typedef void (*Kernel)(float **tensors, float *weights, int y0, int y1, int z0, int z1);
extern Kernel const kernels[];

static void get(void *to, size_t size, size_t count) {
  if (fread(to, size, count, stdin) != count) {
    fputs("what it reads ends too early\n", stderr);
    exit(2);
  }
}

static int32_t number(void) {
  int32_t value;
  get(&value, sizeof value, 1);
  return value;
}

static float *floats(int32_t count) {
  size_t bytes = ((size_t)count * sizeof(float) + 63) / 64 * 64 + 2 * MARGIN;
  char *memory = aligned_alloc(64, bytes);
  if (!memory) exit(2);
  memset(memory, 0, bytes);
  get(memory + MARGIN, sizeof(float), (size_t)count);
  return (float *)(memory + MARGIN);
}

int main(void) {
  for (int32_t left = number(); left > 0; --left) {
    int32_t count = number();
    float *arena = floats(count);
    float *weights = floats(number());
    for (int32_t calls = number(); calls > 0; --calls) {
      float *tensors[MOST_TENSORS];
      int32_t kernel = number(), given = number();
      if (given > MOST_TENSORS) return 2;
      for (int32_t k = 0; k < given; ++k) {
        int32_t of_weights = number();
        tensors[k] = (of_weights ? weights : arena) + number();
      }
      float *own = weights + number();
      int32_t y1 = number(), z1 = number();
      kernels[kernel](tensors, own, 0, y1, 0, z1);
    }
    fwrite(arena, sizeof(float), (size_t)count, stdout);
    free((char *)arena - MARGIN);
    free((char *)weights - MARGIN);
  }
  return 0;
}
