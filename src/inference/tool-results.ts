import { AppError } from '#lib/errors.ts'
import type { RequestItem } from './request.ts'

export type ToolResultItem = Extract<RequestItem, { type: 'tool-result' }>

/** Said of a tool call whose result the caller never sent; servers refuse a call without. */
export const missingResult = 'aborted'

/** Results by call id. A caller may use an id again in a later turn, so each has a list. */
export function indexResults(items: readonly RequestItem[]): Map<string, ToolResultItem[]> {
  const results = new Map<string, ToolResultItem[]>()
  for (const item of items) {
    if (item.type !== 'tool-result') continue
    const sameId = results.get(item.callId)
    if (sameId === undefined) results.set(item.callId, [item])
    else sameId.push(item)
  }
  return results
}

/** For when every call has taken its result: one that is left over answers nothing. */
export function refuseOrphans(results: ReadonlyMap<string, ToolResultItem[]>): void {
  for (const [callId, left] of results) {
    if (left.length === 0) continue
    throw new AppError(
      'invalid_request',
      `The input holds an output for the tool call ${callId}, but no such call.`,
      { param: 'input' },
    )
  }
}
