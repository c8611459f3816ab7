/** The weights of a CTranslate2 model file: floats by name. */
export type Weights = {
  readonly shapeOf: (name: string) => readonly number[]
  readonly floats: (name: string) => Float32Array
  readonly names: readonly string[]
}

const elementBytes: Readonly<Record<number, number>> = { 0: 4, 1: 1, 2: 2, 3: 4, 4: 2 }
const float32 = 0
const float16 = 4

/** Reads a `model.bin`, version 6: header, variables with shape and type, aliases. */
export function readWeights(file: Uint8Array): Weights {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  let at = 4
  const uint32 = () => {
    at += 4
    return view.getUint32(at - 4, true)
  }
  const name = () => {
    const length = view.getUint16(at, true)
    at += 2 + length
    return new TextDecoder().decode(file.subarray(at - length, at - 1))
  }
  name()
  uint32()
  const variables = new Map<string, { dims: number[]; type: number; bytes: Uint8Array }>()
  for (let left = uint32(); left > 0; left--) {
    const variable = name()
    const rank = view.getUint8(at)
    at += 1
    const dims = Array.from({ length: rank }, uint32)
    const type = view.getUint8(at)
    at += 1
    const length = uint32()
    variables.set(variable, { dims, type, bytes: file.slice(at, at + length) })
    at += length
  }
  const find = (variable: string) => {
    const found = variables.get(variable)
    if (found === undefined) throw new Error(`the model has no ${variable}`)
    return found
  }
  return {
    names: [...variables.keys()],
    shapeOf: (variable) => find(variable).dims,
    floats(variable) {
      const { type, bytes, dims } = find(variable)
      if (type === float32) return new Float32Array(bytes.buffer)
      const count = dims.reduce((product, dim) => product * dim, 1)
      if (type !== float16 || bytes.length !== count * (elementBytes[type] ?? 0)) {
        throw new Error(`${variable} has an unsupported type`)
      }
      return Float32Array.from(new Float16Array(bytes.buffer))
    },
  }
}
