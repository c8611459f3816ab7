import { parseArgs } from 'node:util'
import { openDatabase } from '#db/client.ts'
import { createLog } from '#telemetry/log.ts'
import { stopChildren, temporaryFolder } from './support/children.ts'
import { createDatabase, serverPid, setBuildMemory } from './support/database.ts'
import { startGateway } from './support/gateway.ts'
import { startServer } from './support/load.ts'
import { numberIn } from './support/options.ts'
import { toMebibytes } from './support/process-tree.ts'
import { writeResult } from './support/report.ts'
import { createCorpus, makeQuestions, passagesPerFile } from './support/search-corpus.ts'
import { type Filled, fillCollection } from './support/search-fill.ts'
import { runSearches, type SearchPace, type SearchRow } from './support/search-load.ts'
import { BruteForceSearch } from './support/search-truth.ts'
import { formatTable } from './support/table.ts'

export const summary = 'Recall and latency of vector, keyword and hybrid search, with filters.'
export const usage =
  '[--quick] [--passages 10000,100000] [--dims 384] [--database postgres://…] ' +
  '[--build-memory 64MB] [--json FILE]'

/** PGlite has no index and compares all vectors. */
const embeddedPassagesMax = 50_000
const passagesMax = 1_000_000
/** A lower recall fails the benchmark. */
const recallMin = 0.9
const subject = 'bench'

const fullPace: SearchPace = {
  rounds: 3,
  requests: 200,
  roundMsMax: 30_000,
  warmUpRequests: 40,
}
const quickPace: SearchPace = { rounds: 2, requests: 30, roundMsMax: 1_500, warmUpRequests: 10 }
const questionCounts = { full: 100, quick: 40 }
const progressEveryPassages = 50_000

type Options = {
  readonly isQuick: boolean
  readonly sizes: readonly number[]
  readonly dims: number
  readonly databaseServer: string | undefined
  /** `maintenance_work_mem` for building the index. */
  readonly buildMemory: string | undefined
  readonly jsonFile: string | undefined
}

type SizeResult = { readonly passages: number; readonly rows: readonly SearchRow[] } & Filled

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const results: SizeResult[] = []
  for (const passages of options.sizes) {
    const result = await runSize(passages, options)
    results.push(result)
    console.log(`\n${formatSize(result, options)}\n`)
  }
  writeResult('search', options, { results })
  return results.every(({ rows }) => rows.every(isClean)) ? 0 : 1
}

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      passages: { type: 'string' },
      dims: { type: 'string', default: '384' },
      database: { type: 'string' },
      'build-memory': { type: 'string' },
      json: { type: 'string' },
    },
  })
  const isEmbedded = values.database === undefined
  const to = isEmbedded ? embeddedPassagesMax : passagesMax
  const usual = isEmbedded ? '10000,50000' : '10000,100000'
  const sizes = (values.passages ?? (values.quick ? '10000' : usual)).split(',')
  return {
    isQuick: values.quick,
    sizes: sizes.map((size) => {
      const passages = numberIn(size, { name: 'passages', from: 1_000, to })
      return Math.ceil(passages / passagesPerFile) * passagesPerFile
    }),
    dims: Math.round(numberIn(values.dims, { name: 'dims', from: 8, to: 4_000 })),
    databaseServer: values.database,
    buildMemory: values['build-memory'],
    jsonFile: values.json,
  }
}

/** Each size has a database of its own, since table size affects query plans. */
async function runSize(passages: number, options: Options): Promise<SizeResult> {
  const { databaseServer, buildMemory } = options
  try {
    const databaseUrl =
      databaseServer === undefined ? undefined : await createDatabase(databaseServer)
    if (databaseUrl !== undefined && buildMemory !== undefined) {
      await setBuildMemory(databaseUrl, buildMemory)
    }
    return await measureSize(passages, databaseUrl, options)
  } finally {
    await stopChildren()
  }
}

async function measureSize(
  passages: number,
  databaseUrl: string | undefined,
  { isQuick, dims }: Options,
): Promise<SizeResult> {
  const corpus = createCorpus(dims)
  const questions = makeQuestions(isQuick ? questionCounts.quick : questionCounts.full)
  const truth = new BruteForceSearch(questions, corpus.vectorOf)
  const dataFolder = temporaryFolder()
  const model = `seeded-${dims}`
  const log = createLog({
    level: 'error',
    format: 'text',
    now: () => new Date(),
    write: (line) => console.error(line),
  })
  const place = { databaseUrl, dataFolder, connectionsMax: 1, log }
  const database = await openDatabase(place)
  const job = { database, model, dims, subject, passages, corpus, truth }
  const onProgress = (done: number) => {
    if (done % progressEveryPassages === 0) console.log(`${done} of ${passages} passages`)
  }
  const filled = await fillCollection({ ...job, onProgress }).finally(database.close)
  console.log(`${passages} passages are in their tables`)
  const upstreamPort = await startServer('embedding-upstream.ts', [String(dims)])
  const gateway = await startGateway({
    upstreamPort,
    upstreamApi: 'chat',
    databaseUrl,
    dataFolder,
    configLines: `[[model]]\nname = "${model}"\nmode = "embed"\nupstreams = ["default"]\n`,
  })
  const databasePid = databaseUrl === undefined ? null : await serverPid(databaseUrl)
  const pace = isQuick ? quickPace : fullPace
  const rows = await runSearches(
    { target: { ...gateway, databasePid }, questions, truths: truth.truths() },
    pace,
    (round) => console.log(`round ${round} of ${pace.rounds} is done`),
  )
  return { passages, rows, ...filled }
}

function isClean({ wrong, recall }: SearchRow): boolean {
  return wrong === 0 && (recall === null || recall >= recallMin)
}

function formatSize(result: SizeResult, options: Options): string {
  const { passages, rows, fillMs, graphMs, bytes } = result
  const engine = options.databaseServer === undefined ? 'PGlite' : 'PostgreSQL'
  const graph = graphMs === null ? 'none' : `${(graphMs / 1_000).toFixed(1)} s`
  const sizes = [
    `passages ${toMebibytes(bytes.table)} MiB`,
    `words ${toMebibytes(bytes.words)} MiB`,
    `graph ${toMebibytes(bytes.graph)} MiB`,
  ]
  const table = formatTable(
    ['search', 'filter', 'recall@10', 'p50, ms', 'p99, ms', 'CPU, ms', '… database', 'wrong'],
    rows.map(formatRow),
  )
  const samples = rows.flatMap((row) => row.samples.map((sample) => `\n    ${row.mode}: ${sample}`))
  return (
    `${passages} passages of ${options.dims} numbers on ${engine}, in ${passages / passagesPerFile} ` +
    `files: put there in ${(fillMs / 1_000).toFixed(1)} s, graph built in ${graph}; ` +
    `${sizes.join(', ')}\n\n${table}${samples.join('')}`
  )
}

function formatRow(row: SearchRow): string[] {
  const { mode, filter, recall, latencyMs, requests, gatewayCpuMs, databaseCpuMs, wrong } = row
  return [
    mode,
    filter,
    recall === null ? '-' : recall.toFixed(3),
    latencyMs.p50.toFixed(1),
    latencyMs.p99.toFixed(1),
    (gatewayCpuMs / requests).toFixed(2),
    databaseCpuMs === null ? '-' : (databaseCpuMs / requests).toFixed(2),
    `${wrong} of ${requests}`,
  ]
}
