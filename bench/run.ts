/** `bun run bench` lists the benchmarks; `bun run bench NAME [options]` runs one. */

import * as abortStorm from './abort-storm.ts'
import * as batch from './batch.ts'
import * as charts from './charts.ts'
import * as connections from './connections.ts'
import * as countTokens from './count-tokens.ts'
import * as documents from './documents.ts'
import * as events from './events.ts'
import * as headOfLine from './head-of-line.ts'
import * as keyFlood from './key-flood.ts'
import * as lists from './lists.ts'
import * as localSpeech from './local-speech.ts'
import * as longStreams from './long-streams.ts'
import * as overhead from './overhead.ts'
import * as profile from './profile.ts'
import * as retrieval from './retrieval.ts'
import * as search from './search.ts'
import * as soak from './soak.ts'
import * as speechOpen from './speech-open.ts'
import * as stalledReaders from './stalled-readers.ts'
import * as stt from './stt.ts'
import { endChildrenWithThisProcess, StartError, stopChildren } from './support/children.ts'
import { isUsageError } from './support/options.ts'
import * as traffic from './traffic.ts'
import * as transcriptionServer from './transcription-server.ts'
import * as upload from './upload.ts'
import * as usage from './usage.ts'
import * as workers from './workers.ts'

type Bench = {
  /** What it measures, in one sentence. */
  readonly summary: string
  /** Command line options. */
  readonly usage: string
  /** Returns the exit code; throws a usage error for unknown options. */
  run(args: readonly string[]): Promise<number>
}

const benches: ReadonlyMap<string, Bench> = new Map<string, Bench>([
  ['overhead', overhead],
  ['events', events],
  ['profile', profile],
  ['connections', connections],
  ['workers', workers],
  ['long-streams', longStreams],
  ['stalled-readers', stalledReaders],
  ['head-of-line', headOfLine],
  ['abort-storm', abortStorm],
  ['key-flood', keyFlood],
  ['count-tokens', countTokens],
  ['documents', documents],
  ['search', search],
  ['retrieval', retrieval],
  ['stt', stt],
  ['local-speech', localSpeech],
  ['batch', batch],
  ['speech-open', speechOpen],
  ['upload', upload],
  ['usage', usage],
  ['lists', lists],
  ['soak', soak],
  ['traffic', traffic],
  ['transcription-server', transcriptionServer],
  ['charts', charts],
])

const failureExitCode = 1
const usageExitCode = 2

function list(): void {
  for (const [name, bench] of benches) {
    console.log(`${name}\n    ${bench.summary}\n    bun run bench ${name} ${bench.usage}`)
  }
}

async function main(args: readonly string[]): Promise<number> {
  const [name, ...options] = args
  const bench = benches.get(name ?? '')
  if (bench === undefined) {
    list()
    return name === undefined ? 0 : usageExitCode
  }
  endChildrenWithThisProcess()
  try {
    return await bench.run(options)
  } catch (error) {
    if (error instanceof StartError) {
      console.error(error.message)
      return failureExitCode
    }
    if (!isUsageError(error)) throw error
    console.error(`${error.message}\nbun run bench ${name} ${bench.usage}`)
    return usageExitCode
  } finally {
    await stopChildren()
  }
}

process.exit(await main(process.argv.slice(2)))
