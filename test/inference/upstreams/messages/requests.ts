import type { GenerationRequest } from '#inference/request.ts'
import { createToolNames } from '#inference/tools.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { encodeMessagesRequest } from '#inference/upstreams/messages/encode.ts'
import type { WireMessage } from '#inference/upstreams/messages/wire.ts'
import type { JsonObject } from '#lib/json.ts'
import { defaultQuirks, makeRequest } from '#test/support/generation.ts'

export const target = { model: 'm', targetName: 'upstream/m' }

/** The JSON body of a request. */
export function bodyOf(
  given: Partial<GenerationRequest>,
  quirks: Partial<UpstreamQuirks> = {},
): JsonObject & { messages: WireMessage[] } {
  const request = makeRequest(given)
  const body = encodeMessagesRequest(request, {
    ...target,
    quirks: { ...defaultQuirks, ...quirks },
    toolNames: createToolNames(request),
  })
  return JSON.parse(JSON.stringify(body))
}
