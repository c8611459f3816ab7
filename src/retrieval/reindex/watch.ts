import type { ChangeNotifier } from '#db/change-notifier.ts'
import { AppError } from '#lib/errors.ts'
import { isEnded, type Reindex } from './reindex.ts'

/** Each has all files counted once a second. */
const watchersMax = 16

/** Tells of reindexes as they go on, each second and with each change of course, until their end. */
export function createWatch(
  find: (id: string) => Promise<Reindex>,
  { notifier, tellEveryMs }: { notifier: ChangeNotifier; tellEveryMs: number },
) {
  let watchers = 0

  async function* follow(first: Reindex, signal: AbortSignal): AsyncGenerator<Reindex, void, void> {
    watchers += 1
    try {
      for (let seen = first; ; seen = await find(first.id)) {
        yield seen
        if (isEnded(seen.status)) return
        await notifier.wait(first.id, tellEveryMs, signal)
        if (signal.aborted) return
      }
    } finally {
      watchers -= 1
    }
  }

  return async (id: string, signal: AbortSignal): Promise<AsyncIterator<Reindex>> => {
    if (watchers < watchersMax) return follow(await find(id), signal)
    throw new AppError('too_many_streams', 'Too many watch reindexes here; try again later.', {
      retryAfterS: 1,
    })
  }
}
