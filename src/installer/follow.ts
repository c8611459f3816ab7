import type { ChangeNotifier } from '#db/change-notifier.ts'
import { AppError } from '#lib/errors.ts'
import { type Download, type DownloadNews, isTerminal } from './installer.ts'
import { demandRow } from './start.ts'
import { type DownloadStore, listLines } from './store.ts'
import { viewOf } from './view.ts'

/** Each reads the record twice a second. */
const followersMax = 64
const linesAtOnceMax = 500

export function createFollowing(deps: {
  store: DownloadStore
  notifier: Pick<ChangeNotifier, 'subscribe'>
  heartbeatMs: number
}) {
  const { store, notifier, heartbeatMs } = deps
  let followers = 0

  async function* follow(
    first: Download,
    afterSeq: number,
    signal: AbortSignal,
  ): AsyncGenerator<DownloadNews, void, void> {
    const hearing = notifier.subscribe(first.id)
    followers += 1
    try {
      for (let seq = afterSeq; !signal.aborted; ) {
        const news = await store.ask(async (handle) => ({
          download: viewOf(await demandRow(handle, first.id)),
          lines: await listLines(handle, first.id, { afterSeq: seq, limit: linesAtOnceMax }),
        }))
        yield news
        if (isTerminal(news.download.status)) return
        seq = news.lines.at(-1)?.seq ?? seq
        await hearing.next(heartbeatMs, signal)
      }
    } finally {
      followers -= 1
      hearing.close()
    }
  }

  return async (
    download: Download,
    afterSeq: number,
    signal: AbortSignal,
  ): Promise<AsyncIterator<DownloadNews>> => {
    if (followers < followersMax) return follow(download, afterSeq, signal)
    throw new AppError('too_many_streams', 'Too many follow downloads here; try again later.', {
      retryAfterS: 1,
    })
  }
}
