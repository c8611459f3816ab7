ALTER TABLE "extracted_text" ADD COLUMN "warnings" text;--> statement-breakpoint
ALTER TABLE "file_index" ADD COLUMN "warnings" text;--> statement-breakpoint
create or replace view collection_file_state as
select
  member.collection_id,
  member.file_id,
  case
    when bool_or(progress.state = 'done') then 'done'
    when bool_or(progress.state = 'pending') then 'pending'
    when bool_or(progress.state = 'failed') then 'failed'
    when bool_or(progress.state = 'skipped') then 'skipped'
    else 'pending'
  end as state,
  max(progress.stage) filter (where progress.state = 'pending') as stage,
  max(progress.error_code) as error_code,
  max(progress.error_message) as error_message,
  coalesce(max(progress.chunks) filter (where progress.state = 'done'), 0) as chunks,
  max(progress.warnings) filter (where progress.state <> 'pending') as warnings
from collection_file member
join collection on collection.id = member.collection_id
left join file_index progress
  on progress.file_id = member.file_id
  and progress.index_id in (collection.index_id, collection.target_index_id)
group by member.collection_id, member.file_id;
