import { section, whole } from '#config/keys.ts'

/** The keys of batches. */
export const batchesKeys = {
  batches: section('Batches: files of requests that run in the background.', {
    linesMax: whole('Maximum requests per batch.', {
      default: 50_000,
      minimum: 1,
      maximum: 1_000_000,
    }),
    inputBytesMax: whole('Maximum size of an input file.', {
      default: 209_715_200,
      minimum: 1024,
    }),
    runningMax: whole('Concurrent requests of batches per worker.', {
      default: 16,
      minimum: 1,
    }),
    perBatchMax: whole('Concurrent requests of one batch, on all workers together.', {
      default: 8,
      minimum: 1,
      maximum: 1_000,
    }),
    perOwnerMax: whole('Concurrent requests of the batches of one user per worker.', {
      default: 8,
      minimum: 1,
    }),
    unfinishedPerOwnerMax: whole('Unfinished batches per user.', { default: 100, minimum: 1 }),
    retriesMax: whole(
      'How often a request is repeated after a failure of the upstream, beyond the retries of each request. Requests that meet a limit or a busy upstream wait until the batch expires.',
      { default: 2, minimum: 0 },
    ),
    windowS: whole('Time after which a batch expires.', {
      default: 86_400,
      minimum: 1,
      maximum: 2_592_000,
    }),
    keepDays: whole('How long ended batches are kept. Output files are kept like other files.', {
      default: 30,
      minimum: 1,
      maximum: 36_500,
    }),
  }),
}
