/** Writes ONNX models: as much of the format as the models of the tests need. */

type Field = readonly [number, number | bigint | string | Uint8Array]

/** A protobuf message: numbers as varints, everything else with its length. */
function message(fields: readonly Field[]): Uint8Array {
  return Buffer.concat(
    fields.flatMap(([number, value]) => {
      if (typeof value === 'number' || typeof value === 'bigint') {
        return [varint(number << 3), varint(value)]
      }
      const bytes = typeof value === 'string' ? Buffer.from(value) : value
      return [varint((number << 3) | 2), varint(bytes.length), bytes]
    }),
  )
}

function varint(value: number | bigint): Uint8Array {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, BigInt(value))
  do {
    const low = Number(rest & 127n)
    rest >>= 7n
    bytes.push(rest > 0n ? low | 128 : low)
  } while (rest > 0n)
  return Uint8Array.from(bytes)
}

const elementTypes = { float: 1, uint8: 2, int32: 6, int64: 7 } as const
type ElementType = keyof typeof elementTypes

/** `data` is little-endian, as the format requires. */
export function tensor(
  name: string,
  type: ElementType,
  dims: readonly number[],
  data: ArrayBufferView,
): Uint8Array {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  return message([
    ...dims.map((dim): Field => [1, dim]),
    [2, elementTypes[type]],
    [8, name],
    [9, bytes],
  ])
}

export type OnnxNode = {
  readonly op: string
  readonly inputs: readonly string[]
  readonly output: string
  readonly domain?: string
  /** Integers, or floats as `{ float }`. */
  readonly attributes?: Readonly<
    Record<string, number | readonly number[] | { readonly float: number }>
  >
}

function node({ op, inputs, output, domain = '', attributes = {} }: OnnxNode): Uint8Array {
  return message([
    ...inputs.map((input): Field => [1, input]),
    [2, output],
    [4, op],
    ...Object.entries(attributes).map(([name, value]): Field => [5, attribute(name, value)]),
    [7, domain],
  ])
}

function attribute(name: string, value: number | readonly number[] | { float: number }) {
  if (typeof value === 'number')
    return message([
      [1, name],
      [3, value],
      [20, 2],
    ])
  if (!('float' in value)) {
    return message([[1, name], ...value.map((each): Field => [8, each]), [20, 7]])
  }
  const float = new Uint8Array(Float32Array.of(value.float).buffer)
  return Buffer.concat([message([[1, name]]), varint((2 << 3) | 5), float, message([[20, 1]])])
}

/** Dimensions that are names vary between calls. */
export type OnnxValue = {
  readonly name: string
  readonly type: ElementType
  readonly dims: readonly (number | string)[]
}

function value({ name, type, dims }: OnnxValue): Uint8Array {
  const shape = message(
    dims.map((dim): Field => [1, message([typeof dim === 'number' ? [1, dim] : [2, dim]])]),
  )
  const tensorType = message([
    [1, elementTypes[type]],
    [2, shape],
  ])
  return message([
    [1, name],
    [2, message([[1, tensorType]])],
  ])
}

export function onnxModel(graph: {
  readonly nodes: readonly OnnxNode[]
  readonly tensors: readonly Uint8Array[]
  readonly inputs: readonly OnnxValue[]
  readonly outputs: readonly OnnxValue[]
}): Uint8Array {
  const encoded = message([
    ...graph.nodes.map((each): Field => [1, node(each)]),
    [2, 'model'],
    ...graph.tensors.map((each): Field => [5, each]),
    ...graph.inputs.map((each): Field => [11, value(each)]),
    ...graph.outputs.map((each): Field => [12, value(each)]),
  ])
  return message([
    [1, 8],
    [7, encoded],
    [
      8,
      message([
        [1, ''],
        [2, 17],
      ]),
    ],
    [
      8,
      message([
        [1, 'com.microsoft'],
        [2, 1],
      ]),
    ],
  ])
}
