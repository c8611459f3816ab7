import { sleep } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { throttle } from '#lib/throttle.ts'
import type { Log } from '#telemetry/log.ts'

/** The error for a request that found no file descriptor for its socket. */
export function noDescriptorLeft(): AppError {
  return new AppError('no_descriptor_left', 'The server has no descriptor left for this request.', {
    retryAfterS: 1,
  })
}

/**
 * Where the process has no descriptor left, another may come back within moments: connections that
 * came in a burst and were refused hold them until they are closed.
 */
const descriptorWaitMs = 1_000
const descriptorLookMs = 25
/** That there was none is told so often at most. */
const tellEveryMs = 10_000

/**
 * Repeats what found no descriptor until there is one, for a moment at most. An attempt that throws
 * `no_descriptor_left` has sent nothing.
 */
export function createDescriptorWait(options: {
  /** Gives back the descriptors of connections that nobody uses. */
  closeIdle: () => void
  log: Pick<Log, 'warn'> | undefined
}): <T>(attempt: () => Promise<T>, signal: AbortSignal) => Promise<T> {
  const tellMissing = throttle(tellEveryMs, (times) =>
    options.log?.warn('no descriptor was left for a connection to an upstream', { times }),
  )
  return async (attempt, signal) => {
    const givesUpAt = performance.now() + descriptorWaitMs
    while (true) {
      try {
        return await attempt()
      } catch (error) {
        if (!(error instanceof AppError && error.kind === 'no_descriptor_left')) throw error
        options.closeIdle()
        if (performance.now() < givesUpAt) await sleep(descriptorLookMs, signal)
        else {
          tellMissing()
          throw error
        }
      }
    }
  }
}
