import { parseArgs } from 'node:util'
import { Calibration } from '#inference/token-count/calibration.ts'
import { type ClassTokens, classifyText, noTokens } from '#inference/token-count/measured-text.ts'
import {
  builtInTokenizer,
  createTokenizers,
  type Tokenizers,
} from '#inference/token-count/tokenizers.ts'
import { measureText } from '#inference/token-estimate.ts'
import {
  halvesOf,
  realHalves,
  realTokens,
  type TextKind,
  textKinds,
  textOf,
  type Vocabulary,
  vocabularies,
} from '#test/support/token-texts.ts'
import { measureCountLatency } from './support/count-latency.ts'
import { numberIn, oneOf } from './support/options.ts'
import { formatTable } from './support/table.ts'

export const summary = 'Accuracy and latency of input token counts.'
export const usage = '[--requests 300] [--tokenizer qwen3=/path/of/tokenizer.json …]'

/** How often a model reports its usage for the first half before the second half is counted. */
const reportsLearned = 20

type CountText = (text: string) => Promise<number>

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const tokenizers = createTokenizers({ log: { warn: console.error } })
  try {
    const isSame = await checkFiles(tokenizers, options.tokenizers)
    const byTokenizer = counterOf(tokenizers, builtInTokenizer)
    const byEstimate: CountText = async (text) => measureText(text)
    console.log('\nerror of a text of each kind, next to the tokenizer of each model\n')
    console.log(await errorTable({ tokenizer: byTokenizer, estimate: byEstimate }))
    console.log(
      `\nthe second half of each text, once ${reportsLearned} first halves were reported\n`,
    )
    console.log(await calibratedTable({ tokenizer: byTokenizer, estimate: byEstimate }))
    console.log(
      `\nPOST /compat/v1/messages/count_tokens with 100 kB, ${options.requests} times, ms\n`,
    )
    console.log(await measureCountLatency(options.requests))
    return isSame ? 0 : 1
  } finally {
    tokenizers.close()
  }
}

type FileOption = { readonly vocabulary: Vocabulary; readonly path: string }

function readOptions(args: readonly string[]): { requests: number; tokenizers: FileOption[] } {
  const { values } = parseArgs({
    args: [...args],
    options: {
      requests: { type: 'string', default: '300' },
      tokenizer: { type: 'string', multiple: true, default: [] },
    },
  })
  return {
    requests: numberIn(values.requests, { name: 'requests', from: 10, to: 100_000 }),
    tokenizers: values.tokenizer.map((text) => {
      const [name = '', ...path] = text.split('=')
      const words = vocabularies.filter((vocabulary) => vocabulary !== builtInTokenizer)
      const vocabulary = oneOf(name, { name: 'tokenizer', words })
      return { vocabulary, path: path.join('=') }
    }),
  }
}

function counterOf(tokenizers: Tokenizers, tokenizer: string): CountText {
  return async (text) => (await tokenizers.count(tokenizer, [text]))?.[0] ?? Number.NaN
}

/** Compares the recorded counts with tokenizer files; false if one differs. */
async function checkFiles(tokenizers: Tokenizers, files: readonly FileOption[]): Promise<boolean> {
  let isSame = true
  for (const { vocabulary, path } of files) {
    const count = counterOf(tokenizers, path)
    for (const kind of textKinds) {
      const [counted, recorded] = [await count(textOf(kind)), realTokens(kind, vocabulary)]
      if (counted === recorded) continue
      isSame = false
      console.error(`${vocabulary}, ${kind}: ${counted} tokens, recorded are ${recorded}`)
    }
    console.log(`${vocabulary}: compared with ${path}`)
  }
  return isSame
}

type Counters = { readonly tokenizer: CountText; readonly estimate: CountText }
const tiers = ['tokenizer', 'estimate'] as const

function tableOf(
  cell: (way: 'tokenizer' | 'estimate', vocabulary: Vocabulary, kind: TextKind) => Promise<string>,
): Promise<string> {
  const rows = tiers.flatMap((way) =>
    vocabularies.map(async (vocabulary) => [
      way,
      vocabulary,
      ...(await Promise.all(textKinds.map((kind) => cell(way, vocabulary, kind)))),
    ]),
  )
  return Promise.all(rows).then((cells) => formatTable(['tier', 'model', ...textKinds], cells))
}

function errorTable(counters: Counters): Promise<string> {
  return tableOf(async (way, vocabulary, kind) =>
    percent(await counters[way](textOf(kind)), realTokens(kind, vocabulary)),
  )
}

/** Callers who write in one language: the model reports first halves of the same kind. */
function calibratedTable(counters: Counters): Promise<string> {
  return tableOf(async (way, vocabulary, kind) => {
    const [learned, counted] = halvesOf(kind)
    const [reported, real] = realHalves(kind, vocabulary)
    const calibration = new Calibration({ modelsMax: 1 })
    const learnedTokens = inClass(learned, await counters[way](learned))
    for (let turn = 0; turn < reportsLearned; turn++) {
      calibration.learn('model', learnedTokens, reported)
    }
    const tokens = inClass(counted, await counters[way](counted))
    return percent(calibration.correct('model', tokens), real)
  })
}

function inClass(text: string, tokens: number): ClassTokens {
  return { ...noTokens(), [classifyText(text)]: tokens }
}

function percent(counted: number, real: number): string {
  const error = Math.round((counted / real - 1) * 100)
  return `${error > 0 ? '+' : ''}${error} %`
}
