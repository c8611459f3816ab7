import { readFile } from 'node:fs/promises'
import { type Static, Type } from '@sinclair/typebox'
import { isMissing } from '#lib/durable-files.ts'
import { asRecord, parseJson } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'

/** How the output of a model becomes a vector or a score. */
export type Manifest = {
  readonly task: 'embed' | 'rerank'
  /** How the vectors of the tokens become that of the text: their mean, the first, or the last. */
  readonly pooling: 'mean' | 'cls' | 'last'
  readonly normalize: boolean
  readonly queryPrefix: string
  readonly passagePrefix: string
  /** The longest input, with special tokens. */
  readonly tokensMax: number
}

/** `sluice.json` of a model's folder, which overrides what its other files say. */
const overrides = Type.Partial(
  Type.Object({
    task: Type.Union([Type.Literal('embed'), Type.Literal('rerank')]),
    pooling: Type.Union([Type.Literal('mean'), Type.Literal('cls'), Type.Literal('last')]),
    normalize: Type.Boolean(),
    query_prefix: Type.String(),
    passage_prefix: Type.String(),
    tokens_max: Type.Integer({ minimum: 8, maximum: 8_192 }),
  }),
)
type Overrides = Static<typeof overrides>
const overridesChecker = compileChecker(overrides)

/** The cost of a token grows with the length of its text. */
const tokensMaxDefault = 512
/** A file of settings is a few kilobytes. */
const fileBytesMax = 1_048_576

/** Paths of the model's files by their names in the model. */
export type FilePaths = ReadonlyMap<string, string>

/**
 * Reads what kind of model the files are: `sluice.json`, then the files of sentence-transformers, then
 * what is known of its family. Null: neither embeds nor reranks. Throws for an invalid `sluice.json`.
 */
export async function readManifest(name: string, files: FilePaths): Promise<Manifest | null> {
  if (!files.has('tokenizer.json')) return null
  const read = (path: string) => readSettings(files.get(path))
  const own = (await read('sluice.json')) ?? {}
  if (!overridesChecker.check(own)) {
    throw new Error(`sluice.json: ${overridesChecker.firstError(own)?.message}`)
  }
  const given: Overrides = own
  const config = (await read('config.json')) ?? {}
  const pooling = await read('1_Pooling/config.json')
  const task = given.task ?? taskOf(config, pooling !== null)
  if (task === null) return null
  const prompts = asRecord((await read('config_sentence_transformers.json'))?.['prompts'])
  const family = families.find(({ pattern }) => pattern.test(name))
  const { query, passage = prompts['document'] } = prompts
  return {
    task,
    pooling: given.pooling ?? poolingOf(pooling) ?? family?.pooling ?? 'mean',
    normalize: given.normalize ?? true,
    queryPrefix: given.query_prefix ?? textOf(query) ?? family?.queryPrefix ?? '',
    passagePrefix: given.passage_prefix ?? textOf(passage) ?? family?.passagePrefix ?? '',
    tokensMax:
      given.tokens_max ??
      tokensMaxOf([
        config['max_position_embeddings'],
        (await read('tokenizer_config.json'))?.['model_max_length'],
        (await read('sentence_bert_config.json'))?.['max_seq_length'],
      ]),
  }
}

type Family = Partial<Omit<Manifest, 'task' | 'tokensMax'>> & { readonly pattern: RegExp }

/** Where the files of a conversion leave out what the model was trained with. */
const families: readonly Family[] = [
  { pattern: /\be5\b/i, queryPrefix: 'query: ', passagePrefix: 'passage: ' },
  {
    pattern: /\bbge\b.*\ben\b|arctic-embed/i,
    pooling: 'cls',
    queryPrefix: 'Represent this sentence for searching relevant passages: ',
  },
  { pattern: /\bbge\b|gte-(?:multilingual|.*v1\.5)/i, pooling: 'cls' },
]

/** By the class that the model was trained as: a classifier of one class scores pairs of texts. */
function taskOf(
  config: Readonly<Record<string, unknown>>,
  pools: boolean,
): Manifest['task'] | null {
  const { architectures, id2label, num_labels: count } = config
  const [architecture = ''] = Array.isArray(architectures) ? architectures.map(String) : []
  if (architecture.endsWith('ForSequenceClassification')) {
    const labels = id2label === undefined ? count : Object.keys(asRecord(id2label)).length
    return labels === undefined || labels === 1 ? 'rerank' : null
  }
  return pools || /^[A-Za-z]*(?:Bert|Roberta|MPNet|New)[A-Za-z]*Model$/.test(architecture)
    ? 'embed'
    : null
}

function poolingOf(config: Readonly<Record<string, unknown>> | null): Manifest['pooling'] | null {
  if (config?.['pooling_mode_cls_token'] === true) return 'cls'
  if (config?.['pooling_mode_lasttoken'] === true) return 'last'
  return config?.['pooling_mode_mean_tokens'] === true ? 'mean' : null
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function tokensMaxOf(limits: readonly unknown[]): number {
  const known = limits.filter(
    (limit): limit is number => typeof limit === 'number' && Number.isSafeInteger(limit),
  )
  // XLM-RoBERTa has 514 positions, of which it uses 512.
  return Math.min(tokensMaxDefault, ...known.filter((limit) => limit >= 8))
}

async function readSettings(path: string | undefined) {
  if (path === undefined) return null
  try {
    if (Bun.file(path).size > fileBytesMax) return null
    return asRecord(parseJson(await readFile(path, 'utf8')))
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}
