import { seededRandom } from './plan.ts'

/**
 * Passages and questions that are the same in every run and in every process. Their vectors lie
 * around topics and differ in as many directions as those of real models do that matter; their words
 * are as often as words of a language are.
 */

export const passagesPerFile = 10
const topicCount = 200
/** Vectors of models have hundreds of numbers, and far fewer directions in which texts differ. */
const directions = 24
/** How far from the middle of its topic a passage is, in each direction. */
const spread = 0.8
const wordsPerPassage = 120
const wordsPerQuestion = 3
const vocabulary = 20_000
/** Nobody asks by the words that every text has. */
const commonWords = 100

export type CorpusPassage = { readonly text: string; readonly vector: Float32Array }

export type Corpus = {
  /** The passages of one file; they share its topic. */
  file(number: number): CorpusPassage[]
  /** What the model makes of a question. */
  vectorOf(question: string): Float32Array
}

/** Questions have a seed of their own, so that none is a passage. */
const seeds = { space: 1, files: 1_000, questions: 500_000_000 }

export function createCorpus(dims: number): Corpus {
  const chance = seededRandom(seeds.space)
  const map = Array.from({ length: directions }, () => vector(dims, () => gauss(chance)))
  const topics = Array.from({ length: topicCount }, () => vector(directions, () => gauss(chance)))

  function near(topic: number, random: () => number): Float32Array {
    const made = new Float32Array(dims)
    for (const [direction, row] of map.entries()) {
      const amount = (topics[topic]?.[direction] ?? 0) + spread * gauss(random)
      for (let at = 0; at < dims; at++) made[at] = (made[at] ?? 0) + amount * (row[at] ?? 0)
    }
    return made
  }

  return {
    file(number) {
      const random = seededRandom(seeds.files + number)
      const topic = below(topicCount, random)
      return Array.from({ length: passagesPerFile }, () => ({
        text: words(wordsPerPassage, 1, random),
        vector: near(topic, random),
      }))
    },
    vectorOf(question) {
      const random = seededRandom(Number(Bun.hash.xxHash32(question)))
      return near(below(topicCount, random), random)
    },
  }
}

export type CorpusQuestion = {
  readonly text: string
  readonly words: readonly string[]
  /** By attribute: the value that it is asked with. */
  readonly values: ReadonlyMap<string, string>
}

/** A filter by an attribute that one file of `oneOf` has. */
export type CorpusFilter = {
  readonly name: string
  readonly attribute: string | null
  readonly oneOf: number
}

export const corpusFilters: readonly CorpusFilter[] = [
  { name: 'no filter', attribute: null, oneOf: 1 },
  { name: '50 %', attribute: 'half', oneOf: 2 },
  { name: '5 %', attribute: 'twentieth', oneOf: 20 },
  { name: '0.1 %', attribute: 'thousandth', oneOf: 1_000 },
]

/** What a file is filtered by; its topic has nothing to do with it. */
export function attributesOf(file: number): Record<string, string> {
  return valuesOf((oneOf) => file % oneOf)
}

export function makeQuestions(count: number): CorpusQuestion[] {
  return Array.from({ length: count }, (_, number) => {
    const random = seededRandom(seeds.questions + number)
    const text = words(wordsPerQuestion, commonWords, random)
    const values = valuesOf((oneOf) => below(oneOf, random))
    return { text, words: text.split(' '), values: new Map(Object.entries(values)) }
  })
}

function valuesOf(value: (oneOf: number) => number): Record<string, string> {
  return Object.fromEntries(
    corpusFilters.flatMap(({ attribute, oneOf }) =>
      attribute === null ? [] : [[attribute, String(value(oneOf))]],
    ),
  )
}

/** The word of rank n comes n times less often than the first. */
function words(count: number, rankMin: number, random: () => number): string {
  return Array.from({ length: count }, () =>
    wordOf(Math.floor(rankMin * (vocabulary / rankMin) ** random())),
  ).join(' ')
}

const consonants = 'bdfghjklmnprstvz'
const vowels = 'aeiou'
const syllables = consonants.length * vowels.length

/** Three syllables, another word for each rank: 16 and 5 have no divisor in common. */
function wordOf(rank: number): string {
  let word = ''
  for (let left = rank, at = 0; at < 3; at++, left = Math.floor(left / syllables)) {
    const syllable = left % syllables
    word +=
      (consonants[syllable % consonants.length] ?? '') + (vowels[syllable % vowels.length] ?? '')
  }
  return word
}

function vector(length: number, value: () => number): Float32Array {
  return Float32Array.from({ length }, value)
}

function below(count: number, random: () => number): number {
  return Math.floor(random() * count)
}

/** Three even chances together are near enough to the normal one; its deviation is 1. */
function gauss(random: () => number): number {
  return (random() + random() + random() - 1.5) * 2
}
