import { AppError } from '#lib/errors.ts'
import { asRecord } from '#lib/json.ts'
import { addUsage, type EventBatch, reportedUsage, type Usage, withSpentUsage } from './events.ts'
import type { Generate, GenerationJob } from './inference.ts'
import type { GenerationRequest, ToolChoice } from './request.ts'
import { isSameTool, requiresCall } from './tools.ts'
import { readString } from './upstream-fields.ts'

/** A model that ignores `tool_choice` is asked once more, with the instruction in words. */
const attemptsMax = 2

/**
 * Enforces a `tool_choice` that requires a call, since many models and servers ignore it. The response is
 * held until the required call begins; without one the model is asked again, then the generation fails.
 * Refusals, truncated responses and calls of hosted tools pass unchanged.
 */
export function withForcedCall(generate: Generate): Generate {
  return (job) => {
    const { toolChoice, prefilled = false } = job.request
    return requiresCall(toolChoice) && !prefilled ? generateForced(generate, job) : generate(job)
  }
}

async function* generateForced(
  generate: Generate,
  job: GenerationJob,
): AsyncGenerator<EventBatch, void, void> {
  const { toolChoice } = job.request
  let spent: Usage | null = null
  for (let attempts = 1; attempts <= attemptsMax; attempts++) {
    const request = attempts === 1 ? job.request : withInstruction(job.request)
    const held: EventBatch[] = []
    let verdict: Verdict = 'open'
    for await (const batch of generate({ ...job, request })) {
      if (verdict === 'open') {
        held.push(batch)
        verdict = classify(batch, toolChoice)
        if (verdict === 'ignored') {
          spent = addUsage(spent, reportedUsage(batch))
          break
        }
        if (verdict === 'passed') for (const one of held) yield withSpentUsage(one, spent)
      } else yield withSpentUsage(batch, spent)
    }
    if (verdict !== 'ignored') return
  }
  throw new AppError('upstream_invalid_answer', notCalled(toolChoice))
}

type Verdict = 'open' | 'passed' | 'ignored'

function classify(batch: EventBatch, choice: ToolChoice): Verdict {
  if (callsInFrames(batch)) return 'passed'
  for (const event of batch) {
    switch (event.type) {
      case 'tool-call-start':
        return choice.type !== 'tool' || isSameTool(event.call, choice) ? 'passed' : 'ignored'
      case 'hosted-tool-start':
      case 'error':
        return 'passed'
      case 'text-start':
        if (event.form === 'refusal') return 'passed'
        break
      case 'finish':
        return event.reason === 'length' || event.reason === 'content-filter' ? 'passed' : 'ignored'
    }
  }
  return 'open'
}

/** Whether relayed frames begin a call of a server tool, which not all have an event. */
function callsInFrames({ relay }: EventBatch): boolean {
  const frames = relay?.frames ?? []
  return frames.some(({ payload }) =>
    readString(asRecord(payload['content_block'])['type']).endsWith('_tool_use'),
  )
}

function withInstruction(request: GenerationRequest): GenerationRequest {
  const { items, origin, toolChoice } = request
  const what = toolChoice.type === 'tool' ? `the tool ${toolChoice.name}` : 'one of the tools'
  const text = `You must call ${what} now. Respond with the tool call only, without any text.`
  const instructed: GenerationRequest = {
    ...request,
    items: [...items, { type: 'message', role: 'system', parts: [{ type: 'text', text }] }],
  }
  const messages = origin?.body['messages']
  if (origin === undefined || !Array.isArray(messages)) return instructed
  const body = { ...origin.body, messages: [...messages, { role: 'user', content: text }] }
  return { ...instructed, origin: { ...origin, body } }
}

function notCalled(choice: ToolChoice): string {
  return choice.type === 'tool'
    ? `The model did not call the tool ${choice.name}, which tool_choice requires.`
    : 'The model did not call a tool, which tool_choice requires.'
}
