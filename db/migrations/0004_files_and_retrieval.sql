CREATE TABLE "blob" (
	"sha256" text PRIMARY KEY NOT NULL,
	"bytes" bigint NOT NULL,
	"put_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "file" (
	"node_id" uuid PRIMARY KEY NOT NULL,
	"bytes" bigint NOT NULL,
	"mime_type" text NOT NULL,
	"sha256" text NOT NULL,
	"attributes" jsonb NOT NULL,
	"purpose" text NOT NULL,
	"expires_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "node" (
	"id" uuid PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"parent_id" uuid,
	"owner_id" uuid NOT NULL,
	"created_by" uuid NOT NULL,
	"name" text NOT NULL,
	"name_key" text NOT NULL,
	"trashed_at" timestamp with time zone,
	"trash_id" uuid,
	"version" integer DEFAULT 1 NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "node_kind" CHECK ("node"."kind" in ('file', 'folder'))
);
--> statement-breakpoint
CREATE TABLE "share" (
	"id" uuid PRIMARY KEY NOT NULL,
	"resource_type" text NOT NULL,
	"resource_id" uuid NOT NULL,
	"principal_type" text NOT NULL,
	"principal_id" text NOT NULL,
	"role" smallint NOT NULL,
	"granted_by" uuid NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "share_role" CHECK ("share"."role" between 1 and 3)
);
--> statement-breakpoint
CREATE TABLE "job" (
	"id" uuid PRIMARY KEY NOT NULL,
	"queue" text NOT NULL,
	"key" text,
	"payload" text NOT NULL,
	"run_at" timestamp with time zone NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"again" boolean DEFAULT false NOT NULL,
	"locked_by" uuid,
	"locked_until" timestamp with time zone,
	"last_error" text,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "collection" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"title" text,
	"description" text,
	"metadata" text DEFAULT '{}' NOT NULL,
	"owner_id" uuid NOT NULL,
	"access_mode" text NOT NULL,
	"index_id" integer NOT NULL,
	"target_index_id" integer,
	"folder_id" uuid,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "collection_name_unique" UNIQUE("name"),
	CONSTRAINT "collection_access_mode" CHECK ("collection"."access_mode" in ('files', 'collection'))
);
--> statement-breakpoint
CREATE TABLE "collection_file" (
	"collection_id" uuid NOT NULL,
	"file_id" uuid NOT NULL,
	"attributes" jsonb NOT NULL,
	"followed" boolean NOT NULL,
	"batch_id" uuid,
	"added_by" uuid NOT NULL,
	"added_at" timestamp with time zone NOT NULL,
	CONSTRAINT "collection_file_collection_id_file_id_pk" PRIMARY KEY("collection_id","file_id")
);
--> statement-breakpoint
CREATE TABLE "embedding_index" (
	"id" serial PRIMARY KEY NOT NULL,
	"model" text NOT NULL,
	"dims" integer NOT NULL,
	"chunk_tokens_max" integer NOT NULL,
	"chunk_overlap_tokens" integer NOT NULL,
	"state" text NOT NULL,
	"warm_until" timestamp with time zone,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "embedding_index_state" CHECK ("embedding_index"."state" in ('building', 'active', 'warm', 'dropping'))
);
--> statement-breakpoint
CREATE TABLE "extracted_text" (
	"sha256" text NOT NULL,
	"extractor" text NOT NULL,
	"text" text NOT NULL,
	"pages" text,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "extracted_text_sha256_extractor_pk" PRIMARY KEY("sha256","extractor")
);
--> statement-breakpoint
CREATE TABLE "file_index" (
	"file_id" uuid NOT NULL,
	"index_id" integer NOT NULL,
	"state" text NOT NULL,
	"stage" text DEFAULT 'waiting' NOT NULL,
	"sha256" text,
	"chunks" integer DEFAULT 0 NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"error_code" text,
	"error_message" text,
	"reindex_id" uuid,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "file_index_file_id_index_id_pk" PRIMARY KEY("file_id","index_id"),
	CONSTRAINT "file_index_state" CHECK ("file_index"."state" in ('pending', 'done', 'failed', 'skipped'))
);
--> statement-breakpoint
CREATE TABLE "reindex" (
	"id" uuid PRIMARY KEY NOT NULL,
	"source_index_id" integer NOT NULL,
	"target_index_id" integer NOT NULL,
	"source_spec" text NOT NULL,
	"target_spec" text NOT NULL,
	"collection_ids" text NOT NULL,
	"status" text NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"accepted" boolean DEFAULT false NOT NULL,
	"total" integer NOT NULL,
	"end_counters" text,
	"last_error" text,
	"started_by" uuid NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"started_at" timestamp with time zone,
	"finished_at" timestamp with time zone,
	"warm_until" timestamp with time zone,
	"updated_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "file" ADD CONSTRAINT "file_node_id_node_id_fk" FOREIGN KEY ("node_id") REFERENCES "public"."node"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "file" ADD CONSTRAINT "file_sha256_blob_sha256_fk" FOREIGN KEY ("sha256") REFERENCES "public"."blob"("sha256") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "node" ADD CONSTRAINT "node_parent_id_node_id_fk" FOREIGN KEY ("parent_id") REFERENCES "public"."node"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "collection" ADD CONSTRAINT "collection_index_id_embedding_index_id_fk" FOREIGN KEY ("index_id") REFERENCES "public"."embedding_index"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "collection" ADD CONSTRAINT "collection_target_index_id_embedding_index_id_fk" FOREIGN KEY ("target_index_id") REFERENCES "public"."embedding_index"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "collection" ADD CONSTRAINT "collection_folder_id_node_id_fk" FOREIGN KEY ("folder_id") REFERENCES "public"."node"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "collection_file" ADD CONSTRAINT "collection_file_collection_id_collection_id_fk" FOREIGN KEY ("collection_id") REFERENCES "public"."collection"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "collection_file" ADD CONSTRAINT "collection_file_file_id_node_id_fk" FOREIGN KEY ("file_id") REFERENCES "public"."node"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "file_index" ADD CONSTRAINT "file_index_file_id_node_id_fk" FOREIGN KEY ("file_id") REFERENCES "public"."node"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "file_index" ADD CONSTRAINT "file_index_index_id_embedding_index_id_fk" FOREIGN KEY ("index_id") REFERENCES "public"."embedding_index"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "file_sha256" ON "file" USING btree ("sha256");--> statement-breakpoint
CREATE INDEX "file_expires_at" ON "file" USING btree ("expires_at") WHERE "file"."expires_at" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "node_name" ON "node" USING btree ("owner_id",coalesce("parent_id", '00000000-0000-0000-0000-000000000000'::uuid),"name_key") WHERE "node"."trashed_at" is null;--> statement-breakpoint
CREATE INDEX "node_parent" ON "node" USING btree ("parent_id","kind","name_key","id");--> statement-breakpoint
CREATE INDEX "node_owner" ON "node" USING btree ("owner_id","id");--> statement-breakpoint
CREATE INDEX "node_trash" ON "node" USING btree ("trash_id") WHERE "node"."trash_id" is not null;--> statement-breakpoint
CREATE INDEX "node_trashed_at" ON "node" USING btree ("trashed_at") WHERE "node"."trashed_at" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "share_once" ON "share" USING btree ("resource_type","resource_id","principal_type","principal_id");--> statement-breakpoint
CREATE INDEX "share_principal" ON "share" USING btree ("principal_type","principal_id","resource_type");--> statement-breakpoint
CREATE UNIQUE INDEX "job_queue_key" ON "job" USING btree ("queue","key");--> statement-breakpoint
CREATE INDEX "job_queue_run_at" ON "job" USING btree ("queue","run_at");--> statement-breakpoint
CREATE INDEX "collection_owner" ON "collection" USING btree ("owner_id");--> statement-breakpoint
CREATE INDEX "collection_folder" ON "collection" USING btree ("folder_id");--> statement-breakpoint
CREATE INDEX "collection_file_batch" ON "collection_file" USING btree ("batch_id") WHERE "collection_file"."batch_id" is not null;--> statement-breakpoint
CREATE INDEX "collection_file_file" ON "collection_file" USING btree ("file_id");--> statement-breakpoint
CREATE INDEX "file_index_index_state" ON "file_index" USING btree ("index_id","state");--> statement-breakpoint
CREATE INDEX "reindex_source" ON "reindex" USING btree ("source_index_id","status");