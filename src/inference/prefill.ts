import { AppError } from '#lib/errors.ts'
import type { GenerationRequest } from './request.ts'

/** Throws for a request that begins the answer itself, where the upstream cannot go on from there. */
export function refusePrefill({ prefilled = false }: Pick<GenerationRequest, 'prefilled'>): void {
  if (!prefilled) return
  throw new AppError(
    'invalid_request',
    'This model cannot go on from the beginning of an answer; the last message must be one of the user.',
    { param: 'messages' },
  )
}
