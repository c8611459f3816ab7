import type { CancelSignal } from '#lib/cancellation.ts'
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
 * When the process has no file descriptor left, one is often freed soon: refused connections of a
 * burst hold theirs until they are closed.
 */
const pollMs = 25
/** A second. Not measured, so that a process that was suspended meanwhile does not give up. */
const pollsMax = 40
const logEveryMs = 10_000

/**
 * Retries an attempt that found no descriptor, for up to a second. An attempt that throws
 * `no_descriptor_left` has sent nothing.
 */
export function createDescriptorWait(options: {
  /** Frees the descriptors of idle connections. */
  closeIdle: () => void
  log: Pick<Log, 'warn'> | undefined
}): <T>(attempt: () => Promise<T>, signal: CancelSignal) => Promise<T> {
  const logExhausted = throttle(logEveryMs, (count) =>
    options.log?.warn('no file descriptor left for an upstream connection', { count }),
  )
  return async (attempt, signal) => {
    for (let polls = 0; ; polls++) {
      try {
        return await attempt()
      } catch (error) {
        if (!(error instanceof AppError && error.kind === 'no_descriptor_left')) throw error
        options.closeIdle()
        if (polls < pollsMax) await sleep(pollMs, signal)
        else {
          logExhausted()
          throw error
        }
      }
    }
  }
}
