import { entityTag } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'

type Answering = { headers: Record<string, string | number> }

/**
 * Makes a change that has an `If-Match`. Who is refused because of it is told the tag of what stands,
 * which `currentTag` names, so that they know what to read before they try again.
 */
export async function withCurrentTag<T>(
  set: Answering,
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
