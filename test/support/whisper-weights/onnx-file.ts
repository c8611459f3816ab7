/** A writer of ONNX files: protocol buffers with the few fields that a graph needs. */

type Attribute = number | string | readonly number[]

export type Tensor = {
  readonly dims: readonly number[]
  readonly type: keyof typeof elementTypes
  readonly bytes: Uint8Array
}

const elementTypes = { float32: 1, int8: 3, int64: 7 } as const

const opset = 20
const irVersion = 9

/** The parts of a graph in construction. Values are referred to by name. */
export class OnnxGraph {
  readonly #nodes: Uint8Array[] = []
  readonly #tensors: Uint8Array[] = []
  readonly #inputs: Uint8Array[] = []
  readonly #outputs: Uint8Array[] = []
  #values = 0

  input(name: string, type: 'float32' | 'int64', dims: readonly (number | string)[]): string {
    this.#inputs.push(valueInfo(name, type, dims))
    return name
  }

  output(name: string, value: string, dims: readonly (number | string)[]): void {
    this.#nodes.push(node('Identity', [value], [name], {}))
    this.#outputs.push(valueInfo(name, 'float32', dims))
  }

  tensor({ dims, type, bytes }: Tensor): string {
    const name = this.#name()
    this.#tensors.push(
      message(
        packed(1, dims),
        integer(2, elementTypes[type]),
        field(8, text(name)),
        field(9, bytes),
      ),
    )
    return name
  }

  floats(values: Float32Array, dims: readonly number[] = [values.length]): string {
    return this.tensor({ dims, type: 'float32', bytes: bytesOf(values) })
  }

  scalar(value: number): string {
    return this.floats(Float32Array.of(value), [])
  }

  integers(...values: number[]): string {
    const bytes = bytesOf(BigInt64Array.from(values.map(BigInt)))
    return this.tensor({ dims: [values.length], type: 'int64', bytes })
  }

  /** Adds an operation with one output, and returns it. */
  op(type: string, inputs: readonly string[], attributes: Record<string, Attribute> = {}): string {
    return this.ops(type, inputs, 1, attributes)[0] ?? ''
  }

  ops(
    type: string,
    inputs: readonly string[],
    count: number,
    attributes: Record<string, Attribute> = {},
  ): readonly string[] {
    const outputs = Array.from({ length: count }, () => this.#name())
    this.#nodes.push(node(type, inputs, outputs, attributes))
    return outputs
  }

  file(metadata: Readonly<Record<string, string | number>>): Uint8Array {
    const graph = message(
      ...this.#nodes.map((bytes) => field(1, bytes)),
      field(2, text('graph')),
      ...this.#tensors.map((bytes) => field(5, bytes)),
      ...this.#inputs.map((bytes) => field(11, bytes)),
      ...this.#outputs.map((bytes) => field(12, bytes)),
    )
    const properties = Object.entries(metadata).map(([key, value]) =>
      field(14, message(field(1, text(key)), field(2, text(String(value))))),
    )
    return message(
      integer(1, irVersion),
      field(7, graph),
      field(8, message(field(1, text('')), integer(2, opset))),
      ...properties,
    )
  }

  #name(): string {
    this.#values += 1
    return `v${this.#values}`
  }
}

export function bytesOf(values: ArrayBufferView): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
}

function node(
  type: string,
  inputs: readonly string[],
  outputs: readonly string[],
  attributes: Readonly<Record<string, Attribute>>,
): Uint8Array {
  return message(
    ...inputs.map((name) => field(1, text(name))),
    ...outputs.map((name) => field(2, text(name))),
    field(4, text(type)),
    ...Object.entries(attributes).map(([name, value]) => field(5, attribute(name, value))),
  )
}

function attribute(name: string, value: Attribute): Uint8Array {
  const named = field(1, text(name))
  if (typeof value === 'string') return message(named, field(4, text(value)), integer(20, 3))
  if (typeof value !== 'number') {
    return message(named, ...value.map((item) => integer(8, item)), integer(20, 7))
  }
  if (Number.isInteger(value)) return message(named, integer(3, value), integer(20, 2))
  return message(named, float(2, value), integer(20, 1))
}

function valueInfo(
  name: string,
  type: 'float32' | 'int64',
  dims: readonly (number | string)[],
): Uint8Array {
  const shape = message(
    ...dims.map((dim) =>
      field(1, typeof dim === 'number' ? message(integer(1, dim)) : message(field(2, text(dim)))),
    ),
  )
  const tensorType = message(integer(1, elementTypes[type]), field(2, shape))
  return message(field(1, text(name)), field(2, message(field(1, tensorType))))
}

const text = (value: string) => new TextEncoder().encode(value)
const message = (...parts: readonly Uint8Array[]) => new Uint8Array(Buffer.concat([...parts]))

function varint(value: number): Uint8Array {
  const bytes: number[] = []
  for (let rest = BigInt.asUintN(64, BigInt(value)); ; rest >>= 7n) {
    if (rest < 0x80n) return Uint8Array.from([...bytes, Number(rest)])
    bytes.push(Number(rest & 0x7fn) | 0x80)
  }
}

const integer = (at: number, value: number) => message(varint(at * 8), varint(value))
const field = (at: number, content: Uint8Array) =>
  message(varint(at * 8 + 2), varint(content.length), content)
const packed = (at: number, values: readonly number[]) => field(at, message(...values.map(varint)))

function float(at: number, value: number): Uint8Array {
  return message(varint(at * 8 + 5), bytesOf(Float32Array.of(value)))
}
