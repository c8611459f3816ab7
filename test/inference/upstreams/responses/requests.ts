import type { GenerationRequest } from '#inference/request.ts'
import type { UpstreamQuirks } from '#inference/upstream.ts'
import { encodeRequest } from '#inference/upstreams/responses/encode.ts'
import { defaultQuirks, makeRequest, userMessage } from '#test/support/generation.ts'

/** The quirks of a server that supports every field. */
export const quirks: UpstreamQuirks = { ...defaultQuirks, developerRole: true, strictTools: true }

/** A minimal request. */
export const bare: GenerationRequest = makeRequest({ model: 'alias', items: [userMessage('Hi')] })

/** The encoded input of the minimal request. */
export const hi = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }
export const always = { model: 'm', store: false }

/** The JSON body of the request. */
export function body(
  request: Partial<GenerationRequest>,
  others: Partial<UpstreamQuirks> = {},
): unknown {
  const target = { model: 'm', targetName: 'upstream/m', quirks: { ...quirks, ...others } }
  return JSON.parse(JSON.stringify(encodeRequest({ ...bare, ...request }, target)))
}
