import { createBackgroundContext } from '#lib/request-context.ts'
import type { StepDeps } from './steps.ts'
import type { Run } from './store.ts'
import { findUneven, isFound, samplePassages } from './verification-store.ts'

/** So many files are looked for by their own text. */
const samplesMax = 32
/** As many as can be told of at once; what remains is found by the next look. */
const unevenMax = 1_000

/** Files that the target is said to have, and has not. */
export async function findLost(
  { database, store, embedders }: StepDeps,
  { targetIndexId: indexId, targetSpec }: Run,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const uneven = await store.ask((handle) => findUneven(handle, indexId, unevenMax))
  const samples = await store.ask((handle) => samplePassages(handle, indexId, samplesMax))
  if (samples.length === 0) return uneven
  const embedder = await embedders.find(targetSpec.model)
  const texts = samples.map(({ text }) => text)
  const { vectors } = await embedder.embed(texts, {
    purpose: 'passage',
    context: createBackgroundContext(signal),
  })
  const lost = new Set(uneven)
  for (const [at, { id: passageId, fileId }] of samples.entries()) {
    const vector = vectors[at] ?? new Float32Array()
    const isThere =
      vector.length === targetSpec.dims &&
      (await store.ask((handle) =>
        isFound(handle, { indexId, kind: database.kind }, { passageId, vector }),
      ))
    if (!isThere) lost.add(fileId)
  }
  return [...lost]
}
