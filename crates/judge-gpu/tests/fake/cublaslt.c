/* cuBLASLt on the host: products as they are asked for, by columns, in f32 inside, and refusals of what the library refuses.
 *
 * The numbers of attributes and dtypes are those of NVIDIA's headers cublasLt.h and library_types.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID = 7, NOT_SUPPORTED = 15 };
enum { F32 = 0, F16 = 2, BF16 = 14 };

typedef struct { int compute, transa, epilogue; const void *bias; } Desc;
typedef struct { int type; uint64_t rows, columns; int64_t leading; int32_t batches; int64_t stride; } Layout;
/* Bytes that all operands are at multiples of: what is asked for, and what a plan has been made for. */
typedef struct { uint32_t least[4]; } Preference;

extern void fake_record(const char *line) __attribute__((weak));

static size_t size(int type) { return type == F32 ? 4 : 2; }
static float number(const void *at, int type, int64_t i) {
    if (type == F32) return ((const float *)at)[i];
    uint32_t bits = (uint32_t)((const uint16_t *)at)[i] << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
static void put(void *at, int type, int64_t i, float value) {
    if (type == F32) { ((float *)at)[i] = value; return; }
    uint32_t bits;
    memcpy(&bits, &value, 4);
    ((uint16_t *)at)[i] = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

int cublasLtCreate(void **handle) { *handle = (void *)1; return 0; }
int cublasLtDestroy(void *handle) { return 0; }
int cublasLtMatmulDescCreate(void **desc, int compute, int scale) {
    Desc *made = calloc(1, sizeof(Desc));
    made->compute = compute;
    *desc = made;
    return scale == F32 && (compute == 68 || compute == 77) ? 0 : INVALID;
}
int cublasLtMatmulDescDestroy(void *desc) { free(desc); return 0; }
int cublasLtMatmulDescSetAttribute(Desc *desc, int attribute, const void *value, size_t bytes) {
    if (attribute == 3 && bytes == 4) desc->transa = *(const int *)value;
    else if (attribute == 7 && bytes == 4) desc->epilogue = *(const int *)value;
    else if (attribute == 8 && bytes == 8) memcpy(&desc->bias, value, 8);
    else return INVALID;
    return 0;
}
int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
    Layout *made = calloc(1, sizeof(Layout));
    *made = (Layout){type, rows, columns, leading, 1, 0};
    *layout = made;
    return (type == F32 || type == BF16) && leading >= (int64_t)rows ? 0 : INVALID;
}
int cublasLtMatrixLayoutDestroy(void *layout) { free(layout); return 0; }
int cublasLtMatrixLayoutSetAttribute(Layout *layout, int attribute, const void *value, size_t bytes) {
    if (attribute == 5 && bytes == 4) layout->batches = *(const int32_t *)value;
    else if (attribute == 6 && bytes == 8) layout->stride = *(const int64_t *)value;
    else return INVALID;
    return 0;
}
int cublasLtMatmulPreferenceCreate(Preference **preference) {
    *preference = malloc(sizeof(Preference));
    **preference = (Preference){256, 256, 256, 256};
    return 0;
}
int cublasLtMatmulPreferenceDestroy(Preference *preference) { free(preference); return 0; }
int cublasLtMatmulPreferenceSetAttribute(Preference *preference, int attribute, const void *value, size_t bytes) {
    if (attribute >= 5 && attribute <= 8 && bytes == 4) preference->least[attribute - 5] = *(const uint32_t *)value;
    else if (attribute != 1 || bytes != 8) return INVALID;
    return 0;
}

static int refused(const Desc *desc, const Layout *a, const Layout *b, const Layout *c) {
    uint64_t m = desc->transa ? a->columns : a->rows, k = desc->transa ? a->rows : a->columns;
    if (b->rows != k || c->rows != m || c->columns != b->columns) return INVALID;
    if (a->type != b->type || (c->type != a->type && c->type != F32)) return NOT_SUPPORTED;
    if (a->batches != b->batches || a->batches != c->batches) return INVALID;
    /* 4 adds a bias of the result's type. */
    if (desc->epilogue && (desc->epilogue != 4 || a->batches != 1)) return NOT_SUPPORTED;
    return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void *handle, Desc *desc, Layout *a, Layout *b, Layout *c, Layout *d, Preference *preference, int wanted,
                                   Preference *results, int *found) {
    *found = 1;
    *results = *preference; /* a result begins with the algorithm, which has room for it */
    return refused(desc, a, b, d);
}
int cublasLtMatmul(void *handle, Desc *desc, const float *alpha, const void *a, Layout *la, const void *b, Layout *lb, const float *beta,
                   const void *c, Layout *lc, void *d, Layout *ld, const Preference *algorithm, void *workspace, size_t bytes,
                   void *stream) {
    char line[200];
    const char *form = "product %d of %ld x %ld x %ld, dtypes %d and %d, rows %ld, %ld and %ld apart, epilogue %d, %s";
    snprintf(line, sizeof line, form, la->batches, (long)ld->columns, (long)lb->rows, (long)ld->rows, la->type, ld->type,
             (long)lb->leading, (long)la->leading, (long)ld->leading, desc->epilogue, *beta == 0 ? "alone" : "onto another");
    if (fake_record) fake_record(line);
    int fault = refused(desc, la, lb, ld);
    if (fault) return fault;
    const void *places[] = {a, b, c, d};
    for (int i = 0; i < 4; i++) if ((uintptr_t)places[i] % algorithm->least[i]) return INVALID;
    if (desc->epilogue && !desc->bias) return INVALID;
    for (int batch = 0; batch < la->batches; batch++) {
        const char *pa = (const char *)a + batch * la->stride * size(la->type);
        const char *pb = (const char *)b + batch * lb->stride * size(lb->type);
        const char *pc = (const char *)c + batch * lc->stride * size(lc->type);
        char *pd = (char *)d + batch * ld->stride * size(ld->type);
        for (int64_t j = 0; j < (int64_t)ld->columns; j++)
            for (int64_t i = 0; i < (int64_t)ld->rows; i++) {
                float sum = 0;
                for (int64_t l = 0; l < (int64_t)lb->rows; l++)
                    sum += number(pa, la->type, desc->transa ? l + i * la->leading : i + l * la->leading) * number(pb, lb->type, l + j * lb->leading);
                float past = *beta == 0 ? 0 : *beta * number(pc, lc->type, i + j * lc->leading);
                float bias = desc->epilogue ? number(desc->bias, ld->type, i) : 0;
                put(pd, ld->type, i + j * ld->leading, *alpha * sum + past + bias);
            }
    }
    return 0;
}
