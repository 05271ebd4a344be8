//! The stages at which flarena itself writes markers, with their meanings. Tests compare
//! docs/markers.md, the Python hooks and the library with this list. A program's own markers may
//! have any name.

/// The component that writes the marker of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emitter {
    /// libflarena.so, in every process with markers.
    Library,
    /// The Python hooks, in processes of NVFlare, Flower and OpenFL.
    Hooks,
    /// The component that trims: the library, or a hook around NVFlare's cleanup.
    Both,
}

macro_rules! stages {
    ($($stage:ident $name:literal $emitter:ident $meaning:literal)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Stage { $($stage),* }

        impl Stage {
            /// All stages, in the order of the documentation.
            pub const ALL: &[Stage] = &[$(Stage::$stage),*];

            /// The name in markers.
            pub const fn name(self) -> &'static str {
                match self { $(Stage::$stage => $name),* }
            }

            pub const fn emitter(self) -> Emitter {
                match self { $(Stage::$stage => Emitter::$emitter),* }
            }

            /// One sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Stage::$stage => $meaning),* }
            }
        }
    };
}

stages! {
    Load "load" Library "the library was loaded: the process starts"
    Exit "exit" Library "the process ends, by `exit` or by returning from `main`"
    Periodic "periodic" Library "the resident size changed since the last marker (once a minute), or rose above its highest by 5 % and 16 MB, or comes near a limit; without any change at most every hour"
    AtLimit "at_limit" Library "an allocation of 1 MB or more cannot fit below the memory limit, and nothing more can be released (`FLARENA_AT_LIMIT`)"
    BeforeTrim "before_trim" Both "a trim or NVFlare's cleanup is about to return free memory"
    AfterTrim "after_trim" Both "the trim or the cleanup has ended"
    Mark "mark" Library "the program wrote a marker without a name"
    StartRun "start_run" Hooks "a job has started, in the server's or the client's process for it"
    EndRun "end_run" Hooks "the job has ended"
    RoundStarted "round_started" Hooks "the server begins a round"
    BeforeAggregation "before_aggregation" Hooks "the server is about to aggregate the clients' results"
    AfterAggregation "after_aggregation" Hooks "the server has aggregated the results"
    ResultProcessed "result_processed" Hooks "the server has processed a client's result, in a workflow that announces no rounds (cyclic, cross-site evaluation)"
    BeforeTask "before_task" Hooks "the client's job is about to work on a task"
    AfterTask "after_task" Hooks "the client's job has the result of the task"
    AfterSendResult "after_send_result" Hooks "the client's job has sent the result"
    BeforeTrain "before_train" Hooks "an executor that announces its training, or a client of Flower, is about to train"
    AfterTrain "after_train" Hooks "the training has ended"
    Boosted "boosted" Hooks "a client has ended a round of XGBoost's histogram-based training"
    BeforeEvaluate "before_evaluate" Hooks "a client of Flower is about to evaluate the model"
    AfterEvaluate "after_evaluate" Hooks "the evaluation has ended"
    Receive "receive" Hooks "the trainer has received a new model by `receive()`"
    CacheKept "cache_kept" Hooks "the trainer has called `send(clear_cache=False)`, which keeps the received and the sent model; once per process"
    BeforeSend "before_send" Hooks "the trainer has called `send()`, and nothing is sent yet"
    Send "send" Hooks "the trainer has sent its model by `send()`"
    BeforeCall "before_call" Hooks "another site calls a method of this one (NVFlare's Collab API)"
    AfterCall "after_call" Hooks "the called method has returned"
    CallReturned "call_returned" Hooks "this site's call to others has returned (Collab API)"
}

#[cfg(test)]
mod tests;
