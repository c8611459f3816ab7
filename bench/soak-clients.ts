/**
 * The clients of a soak, in a process of their own: each plays seeded random scenes and validates
 * every response. Reads one line of JSON from standard input, a `SoakJob`, and prints one, a
 * `SoakReport`.
 */
import { serveJob } from './support/job-process.ts'
import { seededRandom } from './support/plan.ts'
import { createClient, type Scene, type SoakClient } from './support/soak-client.ts'
import { documentScenes, prepareDocuments } from './support/soak-document-scenes.ts'
import type { Outcome, SoakJob, SoakProgress, SoakReport, SoakTally } from './support/soak-job.ts'
import { modelScenes } from './support/soak-model-scenes.ts'
import { platformScenes } from './support/soak-platform-scenes.ts'
import { slowScenes } from './support/soak-slow-scenes.ts'
import { storedScenes } from './support/soak-stored-scenes.ts'

const scenes = [
  ...modelScenes,
  ...storedScenes,
  ...platformScenes,
  ...documentScenes,
  ...slowScenes,
]
/** Scenes that take longer count as hanging. */
const sceneMsMax = 90_000
/** Maximum pause of a client between two scenes. */
const pauseMsMax = 200
const samplesMax = 20
/** Scenes that started before a worker was killed, or shortly after, may fail with it. */
const killGraceMs = 2_000

const tallies = new Map<string, SoakTally>()
const samples: string[] = []

async function run(job: SoakJob): Promise<SoakReport> {
  const startedMs = performance.now()
  await prepareDocuments(createClient(job, 0, seededRandom(job.seed)))
  const endMs = performance.now() + job.seconds * 1_000
  const progress = setInterval(() => printProgress(performance.now() - startedMs), job.progressMs)
  await Promise.all(
    job.bearers.map((_, number) => {
      return live(createClient(job, number, seededRandom(job.seed * 10_000 + number)), endMs)
    }),
  )
  clearInterval(progress)
  const elapsedMs = performance.now() - startedMs
  return { elapsedMs, kinds: Object.fromEntries(tallies), samples }
}

async function live(client: SoakClient, endMs: number): Promise<void> {
  while (performance.now() < endMs) {
    await Bun.sleep(client.random() * pauseMsMax)
    const scene = draw(client.random)
    const begunAtMs = Date.now()
    const tally = tallyOf(scene.kind)
    try {
      tally[await play(scene, client)] += 1
    } catch (error) {
      if (mayBeKilled(client.job, begunAtMs)) tally.cut += 1
      else note(tally, `${scene.kind}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
}

async function play(scene: Scene, client: SoakClient): Promise<Outcome> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('it does not end')), sceneMsMax)
  try {
    return await Promise.race([scene.play(client), late.promise])
  } finally {
    clearTimeout(timer)
  }
}

function draw(random: () => number): Scene {
  const total = scenes.reduce((sum, { weight }) => sum + weight, 0)
  let left = random() * total
  const found = scenes.find(({ weight }) => {
    left -= weight
    return left < 0
  })
  if (found === undefined) throw new Error('there is no scene')
  return found
}

function mayBeKilled({ killAtMs }: SoakJob, begunAtMs: number): boolean {
  return killAtMs !== null && begunAtMs < killAtMs + killGraceMs && Date.now() >= killAtMs
}

function tallyOf(kind: string): SoakTally {
  const known = tallies.get(kind) ?? { whole: 0, failed: 0, left: 0, cut: 0, wrong: 0 }
  tallies.set(kind, known)
  return known
}

function note(tally: SoakTally, sentence: string): void {
  tally.wrong += 1
  if (samples.length < samplesMax) samples.push(sentence.slice(0, 600))
}

function printProgress(elapsedMs: number): void {
  const all = [...tallies.values()]
  const sum = (read: (tally: SoakTally) => number) =>
    all.reduce((total, tally) => total + read(tally), 0)
  const line: SoakProgress = {
    progress: {
      elapsedMs: Math.round(elapsedMs),
      done: sum(({ whole, failed, left, cut, wrong }) => whole + failed + left + cut + wrong),
      wrong: sum(({ wrong }) => wrong),
    },
  }
  console.error(JSON.stringify(line))
}

serveJob(run)
