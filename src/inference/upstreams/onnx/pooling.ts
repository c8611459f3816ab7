import type { Tensor } from './binding.ts'
import type { Manifest } from './manifest.ts'

/** The vector of each input: from the vectors of its tokens, or as the model already pooled it. */
export function poolTokens(
  { data, dims }: Tensor,
  inputs: readonly { readonly ids: readonly number[] }[],
  pooling: Manifest['pooling'],
): readonly Float32Array[] {
  if (!(data instanceof Float32Array)) throw new Error('the output of the model is not float32')
  const [rows = 0, tokens = 0, size = 0] = dims
  if (rows !== inputs.length) throw new Error(`the model returns ${dims.join('×')} values`)
  if (dims.length === 2) {
    return inputs.map((_, row) => data.slice(row * tokens, (row + 1) * tokens))
  }
  return inputs.map(({ ids }, row) => {
    const vectorAt = (at: number) => {
      const start = (row * tokens + at) * size
      return data.subarray(start, start + size)
    }
    if (pooling === 'cls') return vectorAt(0).slice()
    if (pooling === 'last') return vectorAt(ids.length - 1).slice()
    const parts = ids.map((_, at) => ({ vector: vectorAt(at), weight: 1 }))
    return meanOf(parts)
  })
}

/** The weighted mean of vectors of one length. */
export function meanOf(
  parts: readonly { readonly vector: Float32Array | undefined; readonly weight: number }[],
): Float32Array {
  const [first] = parts
  if (parts.length === 1 && first?.vector !== undefined) return first.vector
  const sum = new Float32Array(first?.vector?.length ?? 0)
  let weights = 0
  for (const { vector, weight } of parts) {
    weights += weight
    for (let at = 0; at < sum.length; at++) sum[at] = (sum[at] ?? 0) + (vector?.[at] ?? 0) * weight
  }
  return sum.map((value) => value / weights)
}

export function toUnitLength(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector)
  return length === 0 ? vector : vector.map((value) => value / length)
}
