import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Texts of six kinds with their counts by real tokenizers; bench/results/count-tokens.md lists
 * them.
 */
export const textKinds = ['english', 'code', 'json', 'german', 'greek', 'chinese'] as const
export type TextKind = (typeof textKinds)[number]

/** The vocabularies of popular models; the first is the built-in one. */
export const vocabularies = ['o200k', 'qwen3', 'llama3', 'gemma3', 'deepseek-v3'] as const
export type Vocabulary = (typeof vocabularies)[number]

const folder = join(import.meta.dir, '../fixtures/token-count')

export function textOf(kind: TextKind): string {
  return readFileSync(join(folder, `${kind}.txt`), 'utf8')
}

/** Split after the first line that ends in the second half, or else before it. */
export function halvesOf(kind: TextKind): [string, string] {
  const text = textOf(kind)
  const middle = text.length >> 1
  const behind = text.indexOf('\n', middle) + 1
  const at = behind < text.length ? behind : text.lastIndexOf('\n', middle - 1) + 1
  return [text.slice(0, at), text.slice(at)]
}

/** Of the whole text, and of each half: two pieces can have one token more than the whole. */
type Counts = readonly [whole: number, first: number, second: number]

const counts: Record<TextKind, Record<Vocabulary, Counts>> = JSON.parse(
  readFileSync(join(folder, 'counts.json'), 'utf8'),
)

export function realTokens(kind: TextKind, vocabulary: Vocabulary): number {
  return counts[kind][vocabulary][0]
}

export function realHalves(kind: TextKind, vocabulary: Vocabulary): [number, number] {
  const [, first, second] = counts[kind][vocabulary]
  return [first, second]
}
