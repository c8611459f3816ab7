import { readWeights, type Weights } from './ctranslate2.ts'
import { bytesOf, OnnxGraph } from './onnx-file.ts'
import {
  type Dims,
  metadataOf,
  specialTokens,
  textContext,
  tokensFile,
} from './whisper-metadata.ts'

/** The files that sherpa-onnx loads as a Whisper model. */
export type WhisperFiles = {
  readonly encoder: Uint8Array
  readonly decoder: Uint8Array
  readonly tokens: string
}

type Source = {
  /** A CTranslate2 `model.bin`. */
  readonly model: Uint8Array
  /** `tokenizer.json` and `config.json` beside it. */
  readonly tokenizer: { readonly model: { readonly vocab: Readonly<Record<string, number>> } }
  readonly config: { readonly alignment_heads: readonly (readonly number[])[] }
}

const endOfInts = 2 ** 31 - 1

/**
 * Converts Whisper weights to the ONNX graphs that sherpa-onnx runs, with 8-bit matrices and with the
 * cross-attention output from which it derives the times of words.
 */
export function convertWhisper({ model, tokenizer, config }: Source): WhisperFiles {
  const weights = readWeights(model)
  const layersOf = (side: string) =>
    weights.names.filter((name) =>
      new RegExp(`^${side}/layer_\\d+/ffn/layer_norm/beta$`).test(name),
    ).length
  const dims: Dims = {
    state: weights.shapeOf('encoder/conv1/bias')[0] ?? 0,
    heads: (weights.shapeOf('encoder/conv1/bias')[0] ?? 0) / 64,
    encoderLayers: layersOf('encoder'),
    decoderLayers: layersOf('decoder'),
    vocab: weights.shapeOf('decoder/embeddings/weight')[0] ?? 0,
  }
  const metadata = metadataOf(dims, config.alignment_heads.length)
  const { end_of_text: textEnd } = specialTokens(dims.vocab)
  return {
    encoder: encoderGraph(weights, dims).file(metadata),
    decoder: decoderGraph(weights, dims, config.alignment_heads).file({}),
    tokens: tokensFile(tokenizer.model.vocab, textEnd),
  }
}

/** Builds layers that both sides of the model share. */
function layers(graph: OnnxGraph, weights: Weights, { state, heads }: Dims) {
  const headSize = state / heads

  /** A matrix in 8 bits with one scale per output, of a slice of the rows of `name`. */
  function linear(x: string, name: string, from = 0, rows?: number, hasBias = true): string {
    const [all = 0, columns = 0] = weights.shapeOf(`${name}/weight`)
    const count = rows ?? all
    const full = weights.floats(`${name}/weight`)
    const product = quantizedProduct(
      graph,
      x,
      full.subarray(from * columns, (from + count) * columns),
      columns,
    )
    if (!hasBias) return product
    const bias = weights.floats(`${name}/bias`).slice(from, from + count)
    return graph.op('Add', [product, graph.floats(bias)])
  }

  const split = (x: string) =>
    graph.op('Transpose', [graph.op('Reshape', [x, graph.integers(0, 0, heads, headSize)])], {
      perm: [0, 2, 1, 3],
    })

  return {
    linear,
    norm: (x: string, name: string) =>
      graph.op('LayerNormalization', [
        x,
        graph.floats(weights.floats(`${name}/gamma`)),
        graph.floats(weights.floats(`${name}/beta`)),
      ]),
    /** The values weighted by attention, and the weights. */
    attend(query: string, key: string, value: string, mask?: string) {
      const scaled = graph.op('Mul', [query, graph.scalar(headSize ** -0.5)])
      const turned = graph.op('Transpose', [split(key)], { perm: [0, 1, 3, 2] })
      const scores = graph.op('MatMul', [split(scaled), turned])
      const masked = mask === undefined ? scores : graph.op('Add', [scores, mask])
      const attention = graph.op('Softmax', [masked], { axis: -1 })
      const mixed = graph.op('Transpose', [graph.op('MatMul', [attention, split(value)])], {
        perm: [0, 2, 1, 3],
      })
      return {
        output: graph.op('Reshape', [mixed, graph.integers(0, 0, state)]),
        attention,
      }
    },
    mlp(x: string, name: string): string {
      const wide = graph.op('Gelu', [linear(x, `${name}/linear_0`)])
      return linear(wide, `${name}/linear_1`)
    },
  }
}

/** `x` times the transposed rows, which are quantized to 8 bits. */
function quantizedProduct(
  graph: OnnxGraph,
  x: string,
  rows: Float32Array,
  columns: number,
): string {
  const count = rows.length / columns
  const scales = new Float32Array(count)
  const turned = new Int8Array(rows.length)
  for (let row = 0; row < count; row++) {
    let max = 0
    for (let at = 0; at < columns; at++) {
      max = Math.max(max, Math.abs(rows[row * columns + at] as number))
    }
    const scale = max === 0 ? 1 : max / 127
    scales[row] = scale
    for (let at = 0; at < columns; at++) {
      turned[at * count + row] = Math.round((rows[row * columns + at] as number) / scale)
    }
  }
  const matrix = graph.tensor({ dims: [columns, count], type: 'int8', bytes: bytesOf(turned) })
  const [quantized = '', scale = '', zero = ''] = graph.ops('DynamicQuantizeLinear', [x], 3)
  const product = graph.op('MatMulInteger', [quantized, matrix, zero])
  const factor = graph.op('Mul', [scale, graph.floats(scales)])
  // 1: float
  return graph.op('Mul', [graph.op('Cast', [product], { to: 1 }), factor])
}

function encoderGraph(weights: Weights, dims: Dims): OnnxGraph {
  const graph = new OnnxGraph()
  const { linear, norm, attend, mlp } = layers(graph, weights, dims)
  const { state } = dims
  const convolve = (x: string, name: string, stride: number) =>
    graph.op('Gelu', [
      graph.op(
        'Conv',
        [
          x,
          graph.floats(weights.floats(`${name}/weight`), weights.shapeOf(`${name}/weight`)),
          graph.floats(weights.floats(`${name}/bias`)),
        ],
        { kernel_shape: [3], strides: [stride], pads: [1, 1] },
      ),
    ])
  const mel = graph.input('mel', 'float32', ['n_audio', 80, 'T'])
  const convolved = convolve(convolve(mel, 'encoder/conv1', 1), 'encoder/conv2', 2)
  let x = graph.op('Transpose', [convolved], { perm: [0, 2, 1] })
  const positions = 'encoder/position_encodings/encodings'
  const length = graph.op('Shape', [x], { start: 1, end: 2 })
  const table = graph.floats(weights.floats(positions), weights.shapeOf(positions))
  x = graph.op('Add', [x, graph.op('Slice', [table, graph.integers(0), length])])
  for (let layer = 0; layer < dims.encoderLayers; layer++) {
    const name = `encoder/layer_${layer}`
    const attention = `${name}/self_attention`
    const normal = norm(x, `${attention}/layer_norm`)
    const part = (at: number) => linear(normal, `${attention}/linear_0`, at * state, state)
    const { output } = attend(part(0), part(1), part(2))
    x = graph.op('Add', [x, linear(output, `${attention}/linear_1`)])
    x = graph.op('Add', [x, mlp(norm(x, `${name}/ffn/layer_norm`), `${name}/ffn`)])
  }
  const audio = norm(x, 'encoder/layer_norm')
  for (const [at, name] of ['n_layer_cross_k', 'n_layer_cross_v'].entries()) {
    const parts = Array.from({ length: dims.decoderLayers }, (_, layer) => {
      const matrix = `decoder/layer_${layer}/attention/linear_1`
      return graph.op('Unsqueeze', [linear(audio, matrix, at * state, state), graph.integers(0)])
    })
    const value = graph.op('Concat', parts, { axis: 0 })
    graph.output(name, value, [dims.decoderLayers, 'n_audio', 'T2', state])
  }
  return graph
}

function decoderGraph(
  weights: Weights,
  dims: Dims,
  alignmentHeads: readonly (readonly number[])[],
): OnnxGraph {
  const graph = new OnnxGraph()
  const { linear, norm, attend, mlp } = layers(graph, weights, dims)
  const { state, decoderLayers, vocab } = dims
  const cacheDims = [decoderLayers, 'n_audio', textContext, state]
  const tokens = graph.input('tokens', 'int64', ['n_audio', 'n_tokens'])
  const caches = ['k', 'v'].map((name) =>
    graph.input(`in_n_layer_self_${name}_cache`, 'float32', cacheDims),
  )
  const crosses = ['k', 'v'].map((name) =>
    graph.input(`n_layer_cross_${name}`, 'float32', [decoderLayers, 'n_audio', 'T', state]),
  )
  const offset = graph.input('offset', 'int64', [1])
  const count = graph.op('Shape', [tokens], { start: 1, end: 2 })
  const end = graph.op('Add', [offset, count])
  const first = graph.integers(1)

  const embeddings = weights.floats('decoder/embeddings/weight')
  const positions = 'decoder/position_encodings/encodings'
  const positionTable = graph.floats(weights.floats(positions), weights.shapeOf(positions))
  let x = graph.op('Add', [
    graph.op('Gather', [graph.floats(embeddings, [vocab, state]), tokens]),
    graph.op('Slice', [positionTable, offset, end]),
  ])
  const maskTable = new Float32Array(textContext * textContext)
  for (let row = 0; row < textContext; row++) {
    maskTable.fill(Number.NEGATIVE_INFINITY, row * textContext + row + 1, (row + 1) * textContext)
  }
  const mask = graph.op('Slice', [
    graph.op('Slice', [graph.floats(maskTable, [textContext, textContext]), offset, end]),
    graph.integers(0),
    end,
    first,
  ])

  const layerOf = (value: string, layer: number) =>
    graph.op('Gather', [value, graph.tensor(scalarInteger(layer))], { axis: 0 })
  const updated: [string[], string[]] = [[], []]
  const alignments: string[] = []
  for (let layer = 0; layer < decoderLayers; layer++) {
    const name = `decoder/layer_${layer}`
    const own = `${name}/self_attention`
    const normal = norm(x, `${own}/layer_norm`)
    const part = (at: number) => linear(normal, `${own}/linear_0`, at * state, state)
    const whole = caches.map((cache, at) => {
      const before = layerOf(cache, layer)
      const past = graph.op('Slice', [before, graph.integers(0), offset, first])
      const joined = graph.op('Concat', [past, part(at + 1)], { axis: 1 })
      const rest = graph.op('Slice', [before, end, graph.integers(endOfInts), first])
      const next = graph.op('Concat', [joined, rest], { axis: 1 })
      updated[at]?.push(graph.op('Unsqueeze', [next, graph.integers(0)]))
      return joined
    })
    const { output } = attend(part(0), whole[0] ?? '', whole[1] ?? '', mask)
    x = graph.op('Add', [x, linear(output, `${own}/linear_1`)])
    const cross = `${name}/attention`
    const query = linear(norm(x, `${cross}/layer_norm`), `${cross}/linear_0`)
    const heard = attend(query, layerOf(crosses[0] ?? '', layer), layerOf(crosses[1] ?? '', layer))
    const heads = alignmentHeads.filter(([of]) => of === layer).map(([, head = 0]) => head)
    if (heads.length > 0) {
      alignments.push(graph.op('Gather', [heard.attention, graph.integers(...heads)], { axis: 1 }))
    }
    x = graph.op('Add', [x, linear(heard.output, `${cross}/linear_2`)])
    x = graph.op('Add', [x, mlp(norm(x, `${name}/ffn/layer_norm`), `${name}/ffn`)])
  }
  const last = norm(x, 'decoder/layer_norm')
  const logits = quantizedProduct(graph, last, embeddings, state)
  graph.output('logits', logits, ['n_audio', 'n_tokens', vocab])
  for (const [at, name] of ['k', 'v'].entries()) {
    const cache = graph.op('Concat', updated[at] ?? [], { axis: 0 })
    graph.output(`out_n_layer_self_${name}_cache`, cache, cacheDims)
  }
  const alignment = graph.op('Concat', alignments, { axis: 1 })
  graph.output('cross_attention_weights', alignment, ['n_audio', 'heads', 'n_tokens', 'T'])
  return graph
}

function scalarInteger(value: number) {
  return { dims: [], type: 'int64', bytes: bytesOf(BigInt64Array.of(BigInt(value))) } as const
}
