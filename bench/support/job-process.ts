/**
 * Runs a one-job program: reads the job as one line of JSON from standard input, prints its report
 * as one line of JSON, and exits; also when standard input closes.
 */
export function serveJob<Job>(run: (job: Job) => Promise<object>): void {
  let line = ''
  let isStarted = false
  process.stdin.setEncoding('utf8')
  process.stdin.on('data', (text: string) => {
    line += text
    if (isStarted || !line.includes('\n')) return
    isStarted = true
    // Only the benchmark writes here.
    run(JSON.parse(line) as Job).then(finish, fail)
  })
  process.stdin.on('end', () => process.exit(1))
}

function finish(report: object): void {
  process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(0))
}

function fail(error: unknown): void {
  console.error(error)
  process.exit(1)
}
