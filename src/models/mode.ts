import { AppError } from '#lib/errors.ts'
import type { Model } from './catalogue.ts'

/** A model that exists and does something else. */
export function modeMismatch(
  name: string,
  { mode, wanted }: { mode: Model['mode']; wanted: Model['mode'] },
): AppError {
  return new AppError(
    'model_mode_mismatch',
    `The model "${name}" is of mode ${mode}; one of mode ${wanted} is needed.`,
    { param: 'model' },
  )
}
