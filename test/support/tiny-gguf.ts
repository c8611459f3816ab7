import { writeFileSync } from 'node:fs'

/**
 * A model file in the GGUF format, version 3, that llama.cpp loads and runs: a llama of two layers
 * with random weights, a tokenizer of single characters and bytes, and a chat template.
 */
export type TinyGguf = {
  /** Same number, same weights. */
  seed?: number
  contextTokens?: number
  /**
   * The logit bias of the end of sequence: 0 is about as likely as a letter, -50 never occurs.
   * Letters are preferred to other bytes by 8.
   */
  endBias?: number
  /** What the model says after every prompt: tokens, each once. It prefers no other token. */
  script?: readonly string[]
  /** Additional or replaced metadata. */
  metadata?: Readonly<Record<string, GgufValue>>
  /** Omitted, which makes the file invalid. */
  withoutTensor?: string
}

type GgufValue =
  | { type: 'u32'; value: number }
  | { type: 'i32[]'; value: readonly number[] }
  | { type: 'f32'; value: number }
  | { type: 'f32[]'; value: readonly number[] }
  | { type: 'bool'; value: boolean }
  | { type: 'string'; value: string }
  | { type: 'string[]'; value: readonly string[] }

const dimensions = 64
const layers = 2
const heads = 4
const forward = 128
const alignment = 32
const letterBias = 8
/** The weight of a scripted transition; anything else stays far below. */
const certainty = 10

/** Each turn between two markers, as in many chat templates. */
const chatTemplate = `{%- for message in messages -%}
{{ '<|turn|>' + message['role'] + '\\n' + message['content'] + '<|end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|turn|>assistant\\n' }}
{%- endif -%}`

export function writeTinyGguf(path: string, options: TinyGguf = {}): void {
  writeFileSync(path, tinyGguf(options))
}

export function tinyGguf(options: TinyGguf = {}): Uint8Array {
  const { seed = 1, contextTokens = 2_048, endBias = 4, script, withoutTensor } = options
  const vocabulary = tinyVocabulary(script ?? [])
  const metadata = {
    ...modelMetadata(contextTokens, vocabulary.tokens.length),
    ...tokenizerMetadata(vocabulary),
    ...options.metadata,
  }
  const tensors = tinyTensors(vocabulary, { seed, endBias }).filter(
    ({ name }) => name !== withoutTensor,
  )
  if (script !== undefined) follow(script, vocabulary, tensors)
  return encodeGguf(metadata, tensors)
}

type Vocabulary = { tokens: readonly string[]; kinds: readonly number[] }

/** The token types of llama.cpp. */
const kind = { normal: 1, unknown: 2, control: 3, byte: 6 }
const endToken = 4

/** The tokenizer writes a space as this sign. */
function spaced(token: string): string {
  return token.replaceAll(' ', '\u2581')
}

/** The special tokens, every byte, and the printable characters of ASCII. */
function tinyVocabulary(script: readonly string[]): Vocabulary {
  const bytes = Array.from({ length: 256 }, (_, byte) => {
    return `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`
  })
  const printable = Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at))
  const characters = printable.map(spaced)
  const single = ['<unk>', '<s>', '</s>', '<|turn|>', '<|end|>', ...bytes, ...characters]
  const phrases = script.map(spaced).filter((phrase) => !single.includes(phrase))
  return {
    tokens: [...single, ...phrases],
    kinds: [
      ...[kind.unknown, kind.control, kind.control, kind.control, kind.control],
      ...bytes.map(() => kind.byte),
      ...[...characters, ...phrases].map(() => kind.normal),
    ],
  }
}

function modelMetadata(contextTokens: number, vocabularySize: number): Record<string, GgufValue> {
  const u32 = (value: number): GgufValue => ({ type: 'u32', value })
  return {
    'general.architecture': { type: 'string', value: 'llama' },
    'general.name': { type: 'string', value: 'tiny' },
    'general.alignment': u32(alignment),
    'llama.context_length': u32(contextTokens),
    'llama.embedding_length': u32(dimensions),
    'llama.block_count': u32(layers),
    'llama.feed_forward_length': u32(forward),
    'llama.attention.head_count': u32(heads),
    'llama.attention.head_count_kv': u32(heads),
    'llama.attention.layer_norm_rms_epsilon': { type: 'f32', value: 1e-5 },
    'llama.rope.dimension_count': u32(dimensions / heads),
    'llama.vocab_size': u32(vocabularySize),
  }
}

function tokenizerMetadata({ tokens, kinds }: Vocabulary): Record<string, GgufValue> {
  return {
    'tokenizer.ggml.model': { type: 'string', value: 'llama' },
    'tokenizer.ggml.tokens': { type: 'string[]', value: tokens },
    'tokenizer.ggml.scores': { type: 'f32[]', value: tokens.map(() => 0) },
    'tokenizer.ggml.token_type': { type: 'i32[]', value: kinds },
    'tokenizer.ggml.unknown_token_id': { type: 'u32', value: 0 },
    'tokenizer.ggml.bos_token_id': { type: 'u32', value: 1 },
    'tokenizer.ggml.eos_token_id': { type: 'u32', value: endToken },
    'tokenizer.ggml.add_bos_token': { type: 'bool', value: true },
    'tokenizer.ggml.add_space_prefix': { type: 'bool', value: false },
    'tokenizer.chat_template': { type: 'string', value: chatTemplate },
  }
}

type Tensor = { name: string; shape: readonly number[]; values: Float32Array }

/**
 * The first dimension is the same for every token, so it sets the preferences of the model; the
 * rest is random.
 */
function tinyTensors(
  { tokens, kinds }: Vocabulary,
  { seed, endBias }: { seed: number; endBias: number },
): Tensor[] {
  const chance = createChance(seed)
  const matrix = (name: string, columns: number, rows: number, scale: number): Tensor => {
    const values = Float32Array.from({ length: columns * rows }, () => chance() * scale)
    return { name, shape: [columns, rows], values }
  }
  const ones = (name: string): Tensor => {
    return { name, shape: [dimensions], values: new Float32Array(dimensions).fill(1) }
  }
  const embedding = matrix('token_embd.weight', dimensions, tokens.length, 1)
  const output = matrix('output.weight', dimensions, tokens.length, 0.3)
  const constant = Math.sqrt(dimensions)
  for (const at of tokens.keys()) {
    embedding.values[at * dimensions] = constant
    // After the last norm the first dimension is about the square root of half of all of them.
    const preference = at === endToken ? endBias : kinds[at] === kind.normal ? letterBias : -50
    output.values[at * dimensions] = preference / Math.sqrt(dimensions / 2)
  }
  const blocks = Array.from({ length: layers }, (_, layer) => {
    const at = (name: string) => `blk.${layer}.${name}.weight`
    const names = ['attn_q', 'attn_k', 'attn_v', 'attn_output']
    return [
      ones(at('attn_norm')),
      ...names.map((name) => matrix(at(name), dimensions, dimensions, 0.08)),
      ones(at('ffn_norm')),
      matrix(at('ffn_gate'), dimensions, forward, 0.08),
      matrix(at('ffn_up'), dimensions, forward, 0.08),
      matrix(at('ffn_down'), forward, dimensions, 0.08),
    ]
  })
  return [embedding, ones('output_norm.weight'), output, ...blocks.flat()]
}

/**
 * Makes the model a table: the blocks add nothing, and the output prefers the token whose
 * predecessor has this embedding. A token outside the script leads to its beginning, and its last
 * token to the end of sequence.
 */
function follow(
  script: readonly string[],
  { tokens }: Vocabulary,
  tensors: readonly Tensor[],
): void {
  const valuesOf = (name: string) =>
    tensors.find((tensor) => tensor.name === name)?.values ?? new Float32Array()
  for (const { name, values } of tensors) if (/_output|_down/.test(name)) values.fill(0)
  const embedding = valuesOf('token_embd.weight')
  const output = valuesOf('output.weight').fill(0)
  const said = script.map((token) => tokens.indexOf(spaced(token)))
  for (const token of said) embedding[token * dimensions] = 0
  for (const [at, token] of [...said, endToken].entries()) {
    const previous = said[at - 1]
    if (previous === undefined) output[token * dimensions] = certainty
    else {
      const column = embedding.subarray(previous * dimensions, (previous + 1) * dimensions)
      output.set(
        column.map((value) => value * certainty),
        token * dimensions,
      )
    }
  }
}

/** Deterministic pseudo-random numbers between -1 and 1. */
function createChance(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 31 - 1
  }
}

/** The value types of the format. */
const valueType = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 }
const float32Tensor = 0

function encodeGguf(
  metadata: Readonly<Record<string, GgufValue>>,
  tensors: readonly Tensor[],
): Uint8Array {
  const entries = Object.entries(metadata)
  let offset = 0
  const infos = tensors.map(({ name, shape, values }) => {
    const info = [text(name), u32(shape.length), ...shape.map(u64), u32(float32Tensor), u64(offset)]
    offset = aligned(offset + values.byteLength)
    return Buffer.concat(info)
  })
  const head = Buffer.concat([
    Buffer.from('GGUF'),
    u32(3),
    u64(tensors.length),
    u64(entries.length),
    ...entries.flatMap(([name, value]) => [text(name), encodeValue(value)]),
    ...infos,
  ])
  const bodies = tensors.map(({ values }) => padded(Buffer.from(values.buffer)))
  return Buffer.concat([padded(head), ...bodies])
}

function encodeValue(given: GgufValue): Buffer {
  switch (given.type) {
    case 'u32':
      return Buffer.concat([u32(valueType.u32), u32(given.value)])
    case 'f32':
      return Buffer.concat([u32(valueType.f32), f32(given.value)])
    case 'bool':
      return Buffer.concat([u32(valueType.bool), Buffer.of(given.value ? 1 : 0)])
    case 'string':
      return Buffer.concat([u32(valueType.string), text(given.value)])
    case 'i32[]':
      return list(valueType.i32, given.value.map(u32))
    case 'f32[]':
      return list(valueType.f32, given.value.map(f32))
    case 'string[]':
      return list(valueType.string, given.value.map(text))
  }
}

function list(type: number, items: readonly Buffer[]): Buffer {
  return Buffer.concat([u32(valueType.array), u32(type), u64(items.length), ...items])
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([u64(bytes.length), bytes])
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

function f32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return bytes
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / alignment) * alignment
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(aligned(bytes.length) - bytes.length)])
}
