import type { Tokenizer } from '@huggingface/tokenizers'
import type { Binding, Session, Tensor } from './binding.ts'
import { meanOf, poolTokens, toUnitLength } from './pooling.ts'
import { createTokenInput, type TokenIds } from './token-input.ts'
import type { LoadOptions, Run, RunResult } from './wire.ts'

export type Encoder = { run(run: Run): Promise<RunResult> }

/** The runtime, and not the model, is broken. */
export class RuntimeLoadError extends Error {}

/** Inputs of a run: attention takes memory by the square of the longest one. */
const inputsPerRunMax = 8
/** Of the output of models that were exported without a name. */
const tokenOutputs = ['last_hidden_state', 'token_embeddings']

/** Loads the runtime, the tokenizer and the model. Throws `RuntimeLoadError`, or what the model causes. */
export async function loadEncoder(options: LoadOptions): Promise<Encoder> {
  const binding = await loadBinding(options.packageEntry)
  const tokenizer = await loadTokenizer(options)
  const session = await binding.InferenceSession.create(options.modelPath, {
    intraOpNumThreads: options.threads,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
    // Waiting threads would take the processor from the gateway.
    extra: { session: { intra_op: { allow_spinning: '0' } } },
  })
  const { manifest } = options
  const inputs = createTokenInput(tokenizer, manifest.tokensMax)
  const model = { binding, session }
  return {
    run: (run) =>
      run.kind === 'embed'
        ? embed(model, { manifest, windows: run.texts.map(inputs.windowsOf) })
        : score(
            model,
            run.documents.map((document) =>
              inputs.pairOf(run.query, document, run.documentTokensMax),
            ),
          ),
  }
}

async function loadBinding(entry: string): Promise<Binding> {
  try {
    const loaded: { default?: Binding } & Partial<Binding> = await import(entry)
    const binding = loaded.default ?? loaded
    if (binding.InferenceSession === undefined || binding.Tensor === undefined) {
      throw new Error('the package has no InferenceSession')
    }
    return binding as Binding
  } catch (error) {
    throw new RuntimeLoadError(String(error), { cause: error })
  }
}

async function loadTokenizer({ tokenizerPath, tokenizerConfigPath }: LoadOptions) {
  const { Tokenizer } = await import('@huggingface/tokenizers')
  const config = tokenizerConfigPath === undefined ? {} : await Bun.file(tokenizerConfigPath).json()
  return new Tokenizer(await Bun.file(tokenizerPath).json(), config) satisfies Tokenizer
}

type Model = { readonly binding: Binding; readonly session: Session }

/** A text longer than the model's input has several windows; its vector is their weighted mean. */
async function embed(
  model: Model,
  {
    manifest,
    windows,
  }: { manifest: LoadOptions['manifest']; windows: readonly (readonly TokenIds[])[] },
): Promise<RunResult> {
  const flat = windows.flat()
  const vectors = await runInputs(model, flat, (output, inputs) =>
    poolTokens(output, inputs, manifest.pooling),
  )
  let at = 0
  const joined = windows.map((ofText) => {
    const parts = ofText.map(({ ids }) => ({ vector: vectors[at++], weight: ids.length }))
    const vector = meanOf(parts)
    return manifest.normalize ? toUnitLength(vector) : vector
  })
  const dims = joined[0]?.length ?? 0
  const all = new Float32Array(dims * joined.length)
  for (const [index, vector] of joined.entries()) all.set(vector, index * dims)
  return { kind: 'embedded', vectors: all, dims, tokens: tokensOf(flat) }
}

/** The probability that a document is relevant, from the single logit of a cross-encoder. */
async function score(model: Model, pairs: readonly TokenIds[]): Promise<RunResult> {
  const logits = await runInputs(model, pairs, ({ data, dims }, inputs) => {
    if (data.length !== inputs.length) {
      throw new Error(`the model returns ${dims.join('×')} values instead of one per document`)
    }
    return Array.from(data, Number)
  })
  const scores = logits.map((logit) => 1 / (1 + Math.exp(-logit)))
  return { kind: 'scored', scores, tokens: tokensOf(pairs) }
}

function tokensOf(inputs: readonly TokenIds[]): number {
  return inputs.reduce((sum, { ids }) => sum + ids.length, 0)
}

/** Inputs of similar length run together, since shorter ones are padded. */
async function runInputs<T>(
  { binding, session }: Model,
  inputs: readonly TokenIds[],
  read: (output: Tensor, inputs: readonly TokenIds[]) => readonly T[],
): Promise<readonly T[]> {
  const order = [...inputs.keys()].sort(
    (one, other) => lengthOf(inputs[one]) - lengthOf(inputs[other]),
  )
  const results = new Array<T>(inputs.length)
  for (let at = 0; at < order.length; at += inputsPerRunMax) {
    const indexes = order.slice(at, at + inputsPerRunMax)
    const some = indexes.flatMap((index) => inputs[index] ?? [])
    const outputs = await session.run(feedsOf({ binding, session }, some))
    const output = outputs[outputName(session)]
    if (output === undefined) throw new Error('the model returns no output')
    for (const [position, result] of read(output, some).entries()) {
      results[indexes[position] ?? 0] = result
    }
  }
  return results
}

function outputName({ outputNames }: Session): string {
  return tokenOutputs.find((name) => outputNames.includes(name)) ?? outputNames[0] ?? ''
}

function feedsOf({ binding, session }: Model, inputs: readonly TokenIds[]) {
  const length = Math.max(...inputs.map(lengthOf))
  const dims = [inputs.length, length]
  const fill = (idAt: (input: TokenIds, position: number) => number) => {
    const data = new BigInt64Array(inputs.length * length)
    inputs.forEach((input, row) => {
      for (let at = 0; at < length; at++) data[row * length + at] = BigInt(idAt(input, at))
    })
    return new binding.Tensor('int64', data, dims)
  }
  const feeds: Readonly<Record<string, () => Tensor>> = {
    input_ids: () => fill(({ ids, padId }, at) => ids[at] ?? padId),
    attention_mask: () => fill(({ ids }, at) => (at < ids.length ? 1 : 0)),
    token_type_ids: () => fill(({ typeIds }, at) => typeIds[at] ?? 0),
    position_ids: () => fill((_, at) => at),
  }
  return Object.fromEntries(
    session.inputNames.map((name) => {
      const feed = feeds[name]
      if (feed === undefined) throw new Error(`the model has an unknown input "${name}"`)
      return [name, feed()]
    }),
  )
}

function lengthOf(input: TokenIds | undefined): number {
  return input?.ids.length ?? 0
}
