/**
 * Sends long prompts at a fixed interval, in a process of its own. Reads a `PromptJob` and prints
 * a `PromptReport`.
 */
import { isRecord, parseJson } from '#lib/json.ts'
import { Histogram } from './support/histogram.ts'
import { serveJob } from './support/job-process.ts'
import { expectedText, responseText } from './support/load-request.ts'
import { barePlan, type Plan, writePlan } from './support/plan.ts'
import type { PromptJob, PromptReport } from './support/prompt-job.ts'
import { noFaults, noteFailure } from './support/stream-check.ts'

/** A short, immediate response. */
const plan: Plan = { ...barePlan, tokens: 8 }
/** A conversation about code: turns of some kilobytes with characters that JSON escapes. */
const turnChars = 4_000
const codeLine = 'if (text === "") return\t{ "found": null }\n'
const responseDeadlineMs = 30_000

function bodyOf({ model, promptBytes }: PromptJob): string {
  const text = codeLine.repeat(Math.ceil(turnChars / codeLine.length))
  const turns = Math.ceil(promptBytes / JSON.stringify({ role: 'assistant', content: text }).length)
  const input = Array.from({ length: turns }, (_, turn) => ({
    role: turn % 2 === 0 ? 'user' : 'assistant',
    content: `${turn} ${text}`,
  }))
  input.push({ role: 'user', content: writePlan(plan) })
  return JSON.stringify({ model, input, store: false })
}

async function run(job: PromptJob): Promise<PromptReport> {
  const latency = new Histogram()
  const faults = noFaults()
  const body = Buffer.from(bodyOf(job))
  const startedMs = performance.now()
  const running: Promise<void>[] = []
  for (let dueMs = 0; dueMs < job.lastsMs; dueMs += job.everyMs) {
    await Bun.sleep(Math.max(0, startedMs + dueMs - performance.now()))
    running.push(ask())
  }
  await Promise.all(running)
  return { responseMs: latency.quantiles(), faults }

  async function ask(): Promise<void> {
    const askedMs = performance.now()
    try {
      const httpResponse = await fetch(`http://127.0.0.1:${job.port}/v1/responses`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${job.bearer}` },
        body,
        signal: AbortSignal.timeout(responseDeadlineMs),
      })
      check(httpResponse.status, await httpResponse.text())
    } catch (error) {
      fail(String(error))
    }
    latency.record(performance.now() - askedMs)
  }

  function check(status: number, responseBody: string): void {
    const parsed = parseJson(responseBody)
    const text = isRecord(parsed) ? responseText('responses', parsed) : undefined
    if (status !== 200) fail(`status ${status}: ${responseBody}`)
    else if (text !== expectedText(plan, text)) fail(`unexpected text: ${responseBody}`)
  }

  function fail(sentence: string): void {
    noteFailure(faults, `a prompt of ${body.length} bytes: ${sentence}`)
  }
}

serveJob(run)
