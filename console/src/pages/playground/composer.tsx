import { useRef, useState } from 'preact/hooks'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { useDrop } from '../../ui/drop.ts'
import { announceFault } from '../../ui/toasts.tsx'
import { type Attachment, attachmentBytesMax, readAttachment } from './attachments.ts'
import { isBusy, settings, stop } from './conversation.ts'
import type { Question } from './request.ts'

/** The input at the end of the conversation: Enter sends, Shift + Enter starts a new line. */
export function Composer({ onSubmit }: { onSubmit: (question: Question) => Promise<void> }) {
  const [draft, setDraft] = useState('')
  const [attachments, setAttachments] = useState<readonly Attachment[]>([])
  const picker = useRef<HTMLInputElement>(null)
  const busy = isBusy.value
  const isSendable =
    !busy && settings.value.model !== '' && (draft.trim() !== '' || attachments.length > 0)

  const submit = () => {
    if (!isSendable) return
    setDraft('')
    setAttachments([])
    void onSubmit({ text: draft.trim(), attachments, results: [] })
  }
  const attach = async (files: Iterable<File>) => {
    // The list of an input empties with it.
    for (const file of [...files]) {
      if (file.size > attachmentBytesMax) {
        const limit = format.bytes(attachmentBytesMax)
        announceFault(new Error(text('playground.attachment_large', { name: file.name, limit })))
        continue
      }
      const attachment = await readAttachment(file)
      setAttachments((before) => [...before, attachment])
    }
  }
  const drop = useDrop(true, ({ files }) => attach(files))
  return (
    <form
      class="composer"
      data-over={drop.isOver}
      {...drop.handlers}
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      <Attachments
        attachments={attachments}
        onRemove={(removed) => setAttachments(attachments.filter((one) => one !== removed))}
      />
      <textarea
        aria-label={text('playground.message')}
        placeholder={text('playground.placeholder')}
        rows={3}
        value={draft}
        onInput={(event) => setDraft(event.currentTarget.value)}
        onPaste={(event) => {
          const files = event.clipboardData?.files
          if (files && files.length > 0) void attach(files)
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
          event.preventDefault()
          submit()
        }}
      />
      <div class="row between">
        <span class="row">
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            aria-label={text('playground.attach')}
            onChange={(event) => {
              void attach(event.currentTarget.files ?? [])
              event.currentTarget.value = ''
            }}
          />
          <Button kind="quiet" icon="attach" size="small" onClick={() => picker.current?.click()}>
            {text('playground.attach')}
          </Button>
        </span>
        {busy ? (
          <Button icon="stop" onClick={stop}>
            {text('playground.stop')}
          </Button>
        ) : (
          <Button kind="primary" icon="send" type="submit" disabled={!isSendable}>
            {text('playground.send')}
          </Button>
        )}
      </div>
    </form>
  )
}

function Attachments({
  attachments,
  onRemove,
}: {
  attachments: readonly Attachment[]
  onRemove: (attachment: Attachment) => void
}) {
  if (attachments.length === 0) return null
  return (
    <ul class="row attachments">
      {attachments.map((attachment) => (
        <li key={attachment.dataUrl.length + attachment.name} class="tag">
          {attachment.name} · {format.bytes(attachment.bytes)}
          <button
            type="button"
            aria-label={text('playground.detach', { name: attachment.name })}
            onClick={() => onRemove(attachment)}
          >
            ×
          </button>
        </li>
      ))}
    </ul>
  )
}
