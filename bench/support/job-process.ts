/**
 * For a program that does one job for a bench: it takes the job as one line of JSON on standard
 * input, prints one line of JSON, its report, and ends; also when its standard input does.
 */
export function serveJob<Job>(run: (job: Job) => Promise<object>): void {
  let line = ''
  let isStarted = false
  process.stdin.setEncoding('utf8')
  process.stdin.on('data', (text: string) => {
    line += text
    if (isStarted || !line.includes('\n')) return
    isStarted = true
    // The bench writes nothing but a job here.
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
