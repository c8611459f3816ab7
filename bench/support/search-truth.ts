import { type CorpusPassage, type CorpusQuestion, corpusFilters } from './search-corpus.ts'

/** Passages requested per question. */
export const hitsPerQuestion = 10

/** Correct results for one question under one filter, by brute force. */
export type ExpectedHits = {
  /** Ids of the nearest passages, nearest first. */
  readonly nearest: readonly string[]
  /** Passages that match the filter. */
  readonly left: number
  /** Matching passages that contain any of the words. */
  readonly worded: number
}

type Tally = { nearest: { id: string; likeness: number }[]; left: number; worded: number }

type Asked = {
  readonly question: CorpusQuestion
  readonly vector: Float32Array
  /** Indexed by filter. */
  readonly tallies: Tally[]
}

/**
 * Compares every passage with every question while the collection is filled, so that passages need
 * not be kept.
 */
export class BruteForceSearch {
  readonly #asked: readonly Asked[]

  constructor(questions: readonly CorpusQuestion[], vectorOf: (question: string) => Float32Array) {
    this.#asked = questions.map((question) => ({
      question,
      vector: toLengthOne(vectorOf(question.text)),
      tallies: corpusFilters.map(() => ({ nearest: [], left: 0, worded: 0 })),
    }))
  }

  /** `ids`: passage ids of one file, in order. */
  take(
    passages: readonly CorpusPassage[],
    ids: readonly string[],
    attributes: Readonly<Record<string, string>>,
  ): void {
    const known = passages.map(({ text, vector }, at) => ({
      id: ids[at] ?? '',
      words: new Set(text.split(' ')),
      vector: toLengthOne(vector),
    }))
    for (const { question, vector, tallies } of this.#asked) {
      const open = tallies.filter((_, at) => isLeft(at, question, attributes))
      for (const passage of known) {
        const likeness = dot(vector, passage.vector)
        const isWorded = question.words.some((word) => passage.words.has(word))
        for (const tally of open) {
          tally.left += 1
          if (isWorded) tally.worded += 1
          insertNearest(tally.nearest, { id: passage.id, likeness })
        }
      }
    }
  }

  /** Indexed by question and filter. */
  truths(): ExpectedHits[][] {
    return this.#asked.map(({ tallies }) =>
      tallies.map(({ nearest, left, worded }) => ({
        left,
        worded,
        nearest: nearest.map(({ id }) => id),
      })),
    )
  }
}

function isLeft(
  filter: number,
  { values }: CorpusQuestion,
  attributes: Readonly<Record<string, string>>,
): boolean {
  const attribute = corpusFilters[filter]?.attribute ?? null
  return attribute === null || attributes[attribute] === values.get(attribute)
}

function insertNearest(nearest: Tally['nearest'], found: Tally['nearest'][number]): void {
  const last = nearest[hitsPerQuestion - 1]
  if (last !== undefined && last.likeness >= found.likeness) return
  const at = nearest.findIndex(({ likeness }) => likeness < found.likeness)
  nearest.splice(at === -1 ? nearest.length : at, 0, found)
  nearest.length = Math.min(nearest.length, hitsPerQuestion)
}

function dot(one: Float32Array, other: Float32Array): number {
  let sum = 0
  for (let at = 0; at < one.length; at++) sum += (one[at] ?? 0) * (other[at] ?? 0)
  return sum
}

function toLengthOne(vector: Float32Array): Float32Array {
  const length = Math.sqrt(dot(vector, vector))
  return vector.map((value) => value / length)
}
