import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '#test/support/free-port.ts'
import { logTail, startChild, temporaryFolder, waitUntil } from './children.ts'

export type Proxy = { readonly port: number; readonly pid: number }

const startDeadlineMs = 5_000

/** Starts nginx with one worker and unbuffered `proxy_pass`; undefined if not installed. */
export async function startNginx(upstreamPort: number): Promise<Proxy | undefined> {
  const program = Bun.which('nginx', { PATH: `${process.env['PATH']}:/usr/sbin:/usr/local/sbin` })
  if (program === null) return undefined
  const folder = temporaryFolder()
  const port = freePort()
  const file = join(folder, 'nginx.conf')
  const logFile = join(folder, 'error.log')
  writeFileSync(file, configuration({ folder, port, upstreamPort }))
  const child = startChild([program, '-p', folder, '-c', file, '-e', logFile], { logFile })
  await waitUntil({
    child,
    deadlineMs: startDeadlineMs,
    isReady: async () => (await fetch(`http://127.0.0.1:${port}/v1/models`)).ok,
    explain: () => `nginx does not respond:\n${logTail(logFile)}`,
  })
  return { port, pid: child.pid }
}

function configuration(options: { folder: string; port: number; upstreamPort: number }): string {
  const { folder, port, upstreamPort } = options
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `  ${name}_temp_path ${folder}/${name};`)
    .join('\n')
  return `daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log warn;
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 16384; }
http {
  access_log off;
${temporary}
  keepalive_timeout 700s;
  keepalive_requests 100000000;
  upstream mock {
    server 127.0.0.1:${upstreamPort};
    keepalive 1024;
    keepalive_requests 100000000;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    client_body_buffer_size 64k;
    location / {
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 700s;
    }
  }
}
`
}
