import { asRecord, parseJson } from '#lib/json.ts'
import { Histogram, type Quantiles } from './histogram.ts'
import { treeUsage } from './process-tree.ts'
import { type CorpusQuestion, corpusFilters } from './search-corpus.ts'
import { collectionName } from './search-fill.ts'
import { type ExpectedHits, hitsPerQuestion } from './search-truth.ts'

const searchModes = ['vector', 'hybrid', 'keyword'] as const
type SearchMode = (typeof searchModes)[number]

/** Result of one kind of search. */
export type SearchRow = {
  readonly mode: SearchMode
  readonly filter: string
  readonly requests: number
  /** Recall; null unless the search is purely by vector. */
  readonly recall: number | null
  readonly latencyMs: Quantiles
  readonly gatewayCpuMs: number
  /** Null if the database is inside the gateway or on another machine. */
  readonly databaseCpuMs: number | null
  /** Incorrect responses. */
  readonly wrong: number
  readonly samples: readonly string[]
}

type SearchTarget = {
  readonly port: number
  readonly pid: number
  readonly bearer: string
  readonly databasePid: number | null
}

export type SearchPace = {
  readonly rounds: number
  /** Requests per kind of search and round. */
  readonly requests: number
  /** Time limit of one kind per round. */
  readonly roundMsMax: number
  readonly warmUpRequests: number
}

export type SearchWork = {
  readonly target: SearchTarget
  readonly questions: readonly CorpusQuestion[]
  /** Indexed by question and filter. */
  readonly truths: readonly (readonly ExpectedHits[])[]
}

const samplesMax = 3
const requestMsMax = 30_000

type SearchVariant = { readonly mode: SearchMode; readonly filter: number }

type Tally = SearchVariant & {
  readonly latencyMs: Histogram
  readonly samples: string[]
  requests: number
  found: number
  toFind: number
  gatewayCpuMs: number
  databaseCpuMs: number
  wrong: number
}

/** Runs all kinds of search in rounds, one request after the other. */
export async function runSearches(
  work: SearchWork,
  pace: SearchPace,
  onRound: (round: number) => void,
): Promise<SearchRow[]> {
  const tallies = searchModes.flatMap((mode) =>
    corpusFilters.map((_, filter) => newTally({ mode, filter })),
  )
  for (const { mode, filter } of tallies) {
    const warmUp = newTally({ mode, filter })
    for (let number = 0; number < pace.warmUpRequests; number++) await ask(work, warmUp, number)
  }
  for (let round = 0; round < pace.rounds; round++) {
    const turn = round % tallies.length
    const order = [...tallies.slice(turn), ...tallies.slice(0, turn)]
    for (const tally of order) await askRound(work, tally, pace)
    onRound(round + 1)
  }
  return tallies.map((tally) => rowOf(tally, work.target))
}

function newTally(way: SearchVariant): Tally {
  return {
    ...way,
    latencyMs: new Histogram(),
    samples: [],
    requests: 0,
    found: 0,
    toFind: 0,
    wrong: 0,
    gatewayCpuMs: 0,
    databaseCpuMs: 0,
  }
}

async function askRound(work: SearchWork, tally: Tally, pace: SearchPace): Promise<void> {
  const { pid, databasePid } = work.target
  const cpu = () => [pid, databasePid].map((root) => (root === null ? 0 : treeUsage(root).cpuMs))
  const endMs = performance.now() + pace.roundMsMax
  const [gatewayMs = 0, databaseMs = 0] = cpu()
  for (let asked = 0; asked < pace.requests && performance.now() < endMs; asked++) {
    const startedMs = performance.now()
    await ask(work, tally, tally.requests)
    tally.latencyMs.record(performance.now() - startedMs)
    tally.requests += 1
  }
  const [gatewayEndMs = 0, databaseEndMs = 0] = cpu()
  tally.gatewayCpuMs += gatewayEndMs - gatewayMs
  tally.databaseCpuMs += databaseEndMs - databaseMs
}

async function ask({ target, questions, truths }: SearchWork, tally: Tally, turn: number) {
  const number = turn % questions.length
  const question = questions[number]
  const truth = truths[number]?.[tally.filter]
  if (question === undefined || truth === undefined) throw new Error('there are no questions')
  const filters = filtersOf(question, tally.filter)
  const httpResponse = await fetch(
    `http://127.0.0.1:${target.port}/v1/collections/${collectionName}/search`,
    {
      method: 'POST',
      headers: { authorization: `Bearer ${target.bearer}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        query: question.text,
        mode: tally.mode,
        top_k: hitsPerQuestion,
        filters,
      }),
      signal: AbortSignal.timeout(requestMsMax),
    },
  )
  const text = await httpResponse.text()
  if (httpResponse.status !== 200) {
    note(tally, `status ${httpResponse.status}: ${text}`)
    return
  }
  const hits = hitsOf(text)
  if (tally.mode === 'vector') {
    tally.toFind += truth.nearest.length
    tally.found += hits.filter(({ id }) => truth.nearest.includes(id)).length
  }
  const fault = faultOf({ tally, question, truth, text, hits })
  if (fault !== null) note(tally, fault)
}

function filtersOf({ values }: CorpusQuestion, filter: number): object[] {
  const attribute = corpusFilters[filter]?.attribute ?? null
  if (attribute === null) return []
  return [{ field: attribute, operator: '==', value: values.get(attribute) }]
}

type FoundHit = {
  readonly id: string
  readonly score: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly text: string
}

function hitsOf(text: string): FoundHit[] {
  const { data } = asRecord(parseJson(text))
  return (Array.isArray(data) ? data : []).map((entry: unknown) => {
    const { chunk, score, attributes, content } = asRecord(entry)
    const [part] = Array.isArray(content) ? content : []
    return {
      id: String(asRecord(chunk)['id']),
      score: Number(score),
      attributes: asRecord(attributes),
      text: String(asRecord(part)['text']),
    }
  })
}

type CheckedHits = {
  readonly tally: SearchVariant
  readonly question: CorpusQuestion
  readonly truth: ExpectedHits
  readonly text: string
  readonly hits: readonly FoundHit[]
}

/** The error in a response apart from ranking; null: none. */
function faultOf({ tally, question, truth, text, hits }: CheckedHits): string | null {
  const { mode, filter } = tally
  const { degraded } = asRecord(asRecord(parseJson(text))['retrieval'])
  if (!Array.isArray(degraded) || degraded.length > 0) return `degraded: ${String(degraded)}`
  const due = Math.min(hitsPerQuestion, mode === 'keyword' ? truth.worded : truth.left)
  if (hits.length !== due) return `${hits.length} passages in place of ${due}`
  if (new Set(hits.map(({ id }) => id)).size !== due) return 'a duplicate passage'
  if (hits.some(({ score }, at) => score > (hits[at - 1]?.score ?? score))) return 'out of order'
  const attribute = corpusFilters[filter]?.attribute ?? null
  const value = attribute === null ? undefined : question.values.get(attribute)
  const isOut = ({ attributes }: FoundHit) => attribute !== null && attributes[attribute] !== value
  if (hits.some(isOut)) return 'a passage outside the filter'
  const isWorded = (hit: FoundHit) =>
    hit.text.split(' ').some((word) => question.words.includes(word))
  if (mode === 'keyword' && !hits.every(isWorded)) return 'a passage without any of the words'
  return null
}

function note(tally: Tally, sentence: string): void {
  tally.wrong += 1
  if (tally.samples.length < samplesMax) tally.samples.push(sentence.slice(0, 300))
}

function rowOf(tally: Tally, target: SearchTarget): SearchRow {
  const { mode, filter, requests, found, toFind, wrong, samples } = tally
  return {
    mode,
    requests,
    wrong,
    samples,
    filter: corpusFilters[filter]?.name ?? '',
    recall: toFind === 0 ? null : found / toFind,
    latencyMs: tally.latencyMs.quantiles(),
    gatewayCpuMs: tally.gatewayCpuMs,
    databaseCpuMs: target.databasePid === null ? null : tally.databaseCpuMs,
  }
}
