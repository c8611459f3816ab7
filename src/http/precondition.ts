import { entityTag } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'

/**
 * Runs a change that has an `If-Match`. If it fails with `precondition_failed`, the response carries
 * the current tag, so that the client knows what to read before it retries.
 */
export async function withCurrentTag<T>(
  set: { headers: Record<string, string | number> },
  currentTag: () => Promise<string>,
  change: () => Promise<T>,
): Promise<T> {
  try {
    return await change()
  } catch (error) {
    if (error instanceof AppError && error.kind === 'precondition_failed') {
      set.headers['etag'] = entityTag(await currentTag())
    }
    throw error
  }
}
