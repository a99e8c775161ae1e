/* What transfer_engine_c_smoke.c offers to the test that runs it. */
#ifndef MOONCAKE_FACES_TRANSFER_ENGINE_C_SMOKE_H
#define MOONCAKE_FACES_TRANSFER_ENGINE_C_SMOKE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Moves bytes between two engines by C alone, both ways, with a notify. 0, or the line that found
 * something wrong. */
int RunTransferEngineFromC(void);

#ifdef __cplusplus
}
#endif

#endif /* MOONCAKE_FACES_TRANSFER_ENGINE_C_SMOKE_H */
