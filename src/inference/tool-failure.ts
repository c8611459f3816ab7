import type { ContentPart, RequestItem } from './request.ts'

/** Upstreams without a field for it are told in front of what the tool said. */
const failureMarker = '[The tool failed]'

/** What a tool gave, with the word that it failed where it did. */
export function markFailure({
  parts,
  isError = false,
}: Pick<
  Extract<RequestItem, { type: 'tool-result' }>,
  'parts' | 'isError'
>): readonly ContentPart[] {
  if (!isError) return parts
  const [first, ...others] = parts
  if (first?.type !== 'text') return [{ type: 'text', text: failureMarker }, ...parts]
  return [{ type: 'text', text: `${failureMarker}\n${first.text}` }, ...others]
}
