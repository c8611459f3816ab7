import type { ContentPart } from '#inference/request.ts'
import { AppError } from '#lib/errors.ts'

/** The text of a message; throws where there is anything else in it. */
export function textOf(parts: readonly ContentPart[]): string {
  return parts.map(textOfPart).join('\n')
}

function textOfPart(part: ContentPart): string {
  if ('text' in part) return part.text
  const what = part.type === 'image' ? 'images' : 'files'
  throw new AppError(
    'invalid_request',
    `The model runs on this machine and reads text alone, but the input holds ${what}.`,
    { param: 'input' },
  )
}
