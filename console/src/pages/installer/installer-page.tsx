import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { Progress } from '../../ui/progress.tsx'
import { useQuery } from '../../ui/query.ts'
import { Downloads } from './downloads.tsx'
import { InstallDialog } from './install-dialog.tsx'
import { Installed } from './installed.tsx'
import { Runtimes } from './runtimes.tsx'

export function InstallerPage() {
  const [isInstalling, setInstalling] = useState(false)
  const [round, setRound] = useState(0)
  const changed = () => setRound((count) => count + 1)
  return (
    <Page
      title={text('installer.title')}
      about={text('installer.about')}
      actions={
        <Button kind="primary" icon="download" onClick={() => setInstalling(true)}>
          {text('installer.install')}
        </Button>
      }
    >
      <Storage round={round} />
      <Downloads round={round} onChange={changed} />
      <Runtimes round={round} onChange={changed} />
      <Installed round={round} onChange={changed} />
      {isInstalling && (
        <InstallDialog
          onClose={() => setInstalling(false)}
          onStarted={() => {
            setInstalling(false)
            changed()
          }}
        />
      )}
    </Page>
  )
}

function Storage({ round }: { round: number }) {
  const { data } = useQuery(
    (signal) => call('GET /v1/model-installer/storage', { signal }),
    `storage ${round}`,
  )
  if (data === undefined) return null
  const { total, free, used, partials } = data
  return (
    <section class="card card-body stack tight" aria-label={text('installer.storage')}>
      <div class="row between">
        <h2>{text('installer.storage')}</h2>
        <span class="muted">
          {text('installer.storage_free', {
            free: format.bytes(free),
            total: format.bytes(total),
          })}
        </span>
      </div>
      <Progress label={text('installer.storage')} value={total - free} max={total} />
      <p class="small muted">
        {text('installer.storage_used', {
          used: format.bytes(used),
          partials: format.bytes(partials),
        })}
      </p>
    </section>
  )
}
