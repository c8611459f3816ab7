/**
 * A program that ingests files and blocks at the given step, after it has printed a line.
 * Without a step it processes all jobs.
 */
import { openDatabase } from '#db/client.ts'
import { setRequestWait } from '#db/query-runner.ts'
import type { IngestDeps } from '#retrieval/ingest/ingest.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { helperTimeoutMs } from '#test/support/time-limits.ts'
import { startIngestHarness } from './ingest-harness.ts'

const [dataFolder = '', databaseUrl = '', step = '', name = '', ...texts] = Bun.argv.slice(2)
setRequestWait(helperTimeoutMs)
const database = await openDatabase({
  dataFolder,
  databaseUrl: databaseUrl === '' ? undefined : databaseUrl,
  connectionsMax: 4,
  log: quietLog,
})

async function reach(reached: string): Promise<void> {
  if (reached !== step) return
  process.stdout.write('here\n')
  await new Promise(() => {})
}

function withSteps(deps: IngestDeps): IngestDeps {
  return {
    ...deps,
    storage: {
      async read(sha256) {
        await reach('before reading')
        return deps.storage.read(sha256)
      },
    },
    extraction: {
      ...deps.extraction,
      async extract(...given) {
        const text = await deps.extraction.extract(...given)
        await reach('after reading')
        return text
      },
    },
    embedders: {
      async find(model, principal) {
        await reach('before embedding')
        const embedder = await deps.embedders.find(model, principal)
        return {
          model,
          async embed(...given) {
            const embedding = await embedder.embed(...given)
            await reach('after embedding')
            return embedding
          },
        }
      },
    },
    chunkTables: {
      find: (id) => deps.chunkTables.find(id),
      textHashes: (...given) => deps.chunkTables.textHashes(...given),
      async replace(...given) {
        await deps.chunkTables.replace(...given)
        await reach('before the commit')
      },
    },
    jobs: {
      add: (...given) => deps.jobs.add(...given),
      process: (queue, worker) =>
        deps.jobs.process(queue, {
          ...worker,
          async run(job) {
            await reach('before the work')
            await worker.run(job)
            await reach('after the work')
          },
        }),
    },
  }
}

const harness = await startIngestHarness(database, dataFolder, {
  times: { leaseMs: 1_000 },
  around: withSteps,
})
if (name !== '') await harness.upload(name, texts.join(' '))
if (step === '') {
  await harness.settled()
  process.stdout.write('done\n')
}
