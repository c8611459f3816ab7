CREATE TABLE "audit_entry" (
	"id" uuid PRIMARY KEY NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"actor_id" uuid,
	"actor_key_id" uuid,
	"action" text NOT NULL,
	"resource_type" text NOT NULL,
	"resource_id" text NOT NULL,
	"changes" text NOT NULL,
	"request_id" text
);
--> statement-breakpoint
CREATE TABLE "download" (
	"id" uuid PRIMARY KEY NOT NULL,
	"model" text NOT NULL,
	"source" text NOT NULL,
	"revision" text,
	"status" text NOT NULL,
	"wanted" text NOT NULL,
	"bytes_total" bigint,
	"bytes_completed" bigint DEFAULT 0 NOT NULL,
	"bytes_per_second" bigint,
	"files" text NOT NULL,
	"error" text,
	"attempts" integer DEFAULT 0 NOT NULL,
	"started_by" uuid NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	"finished_at" timestamp with time zone,
	CONSTRAINT "download_status" CHECK ("download"."status" in ('queued', 'resolving', 'downloading', 'verifying', 'committing', 'paused', 'completed', 'failed', 'cancelled')),
	CONSTRAINT "download_wanted" CHECK ("download"."wanted" in ('run', 'pause', 'cancel'))
);
--> statement-breakpoint
CREATE TABLE "download_line" (
	"download_id" uuid NOT NULL,
	"seq" integer NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"level" text NOT NULL,
	"message" text NOT NULL,
	CONSTRAINT "download_line_download_id_seq_pk" PRIMARY KEY("download_id","seq")
);
--> statement-breakpoint
ALTER TABLE "app_group" ADD COLUMN "description" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "app_group" ADD COLUMN "idp_claim" text;--> statement-breakpoint
ALTER TABLE "app_group" ADD COLUMN "created_at" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "app_group" ADD COLUMN "updated_at" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "app_user" ADD COLUMN "name" text;--> statement-breakpoint
ALTER TABLE "app_user" ADD COLUMN "disabled_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "app_user" ADD COLUMN "last_seen_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "app_user" ADD COLUMN "created_by" uuid;--> statement-breakpoint
ALTER TABLE "group_member" ADD COLUMN "granted_by" uuid;--> statement-breakpoint
ALTER TABLE "group_member" ADD COLUMN "granted_at" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "download_line" ADD CONSTRAINT "download_line_download_id_download_id_fk" FOREIGN KEY ("download_id") REFERENCES "public"."download"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "audit_entry_resource" ON "audit_entry" USING btree ("resource_type","resource_id","id");--> statement-breakpoint
CREATE INDEX "audit_entry_actor" ON "audit_entry" USING btree ("actor_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "download_model" ON "download" USING btree ("model") WHERE "download"."finished_at" is null;--> statement-breakpoint
CREATE INDEX "download_finished_at" ON "download" USING btree ("finished_at");--> statement-breakpoint
CREATE INDEX "group_member_group_name" ON "group_member" USING btree ("group_name");--> statement-breakpoint
ALTER TABLE "app_group" ADD CONSTRAINT "app_group_idp_claim_unique" UNIQUE("idp_claim");--> statement-breakpoint
-- Who is in which group: given by hand, or as the words of the last token mean it. A word means the
-- group that claims it, and else the group of that name, unless that group claims another word.
CREATE VIEW user_group AS
SELECT member.user_id, coalesce(mapped.name, member.group_name) AS group_name, member.source
FROM group_member member
LEFT JOIN app_group mapped ON member.source = 'idp' AND mapped.idp_claim = member.group_name
WHERE member.source = 'manual' OR mapped.name IS NOT NULL OR NOT EXISTS (
  SELECT 1 FROM app_group own WHERE own.name = member.group_name AND own.idp_claim IS NOT NULL);
