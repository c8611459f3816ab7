import { seededRandom } from './plan.ts'

/**
 * Deterministic passages and questions, equal in every process. Vectors cluster around topics with
 * the intrinsic dimension of real embeddings; word frequencies follow natural language.
 */

export const passagesPerFile = 10
const topicCount = 200
/** Intrinsic dimension of real embeddings, far below their length. */
const directions = 24
/** Deviation of a passage from its topic, per direction. */
const spread = 0.8
const wordsPerPassage = 120
const wordsPerQuestion = 3
const vocabulary = 20_000
/** The most frequent words, which queries do not use. */
const commonWords = 100

export type CorpusPassage = { readonly text: string; readonly vector: Float32Array }

export type Corpus = {
  /** Passages of one file share its topic. */
  file(number: number): CorpusPassage[]
  /** Embedding of a question. */
  vectorOf(question: string): Float32Array
}

/** Questions use another seed, so that none equals a passage. */
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
  /** Filter value by attribute. */
  readonly values: ReadonlyMap<string, string>
}

/** A filter by an attribute that one of `oneOf` files has. */
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

/** Filter attributes of a file, independent of its topic. */
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

/** Zipf distribution: the word of rank n is n times rarer than the first. */
function words(count: number, rankMin: number, random: () => number): string {
  return Array.from({ length: count }, () =>
    wordOf(Math.floor(rankMin * (vocabulary / rankMin) ** random())),
  ).join(' ')
}

const consonants = 'bdfghjklmnprstvz'
const vowels = 'aeiou'
const syllables = consonants.length * vowels.length

/** Three syllables, unique per rank: 16 and 5 are coprime. */
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

/** Approximates a normal distribution with deviation 1 by three uniform ones. */
function gauss(random: () => number): number {
  return (random() + random() + random() - 1.5) * 2
}
