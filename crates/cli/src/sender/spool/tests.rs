//! The directory's own behaviour. The whole way of a file is tested with the binary.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use super::folder::{End, Folder, Found, answer_of, surely_next};

fn put(root: &Path, name: &str, second: u64) {
    let file = File::create(root.join(name)).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(second))
        .unwrap();
}

fn names(taken: &[OsString]) -> Vec<&str> {
    taken.iter().map(|name| name.to_str().unwrap()).collect()
}

#[test]
fn files_are_taken_by_time_then_by_name_and_others_are_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for (name, second) in [
        ("c.json", 1),
        ("a.json", 2),
        ("b.json", 2),
        (".hidden", 0),
        ("d.tmp", 0),
        ("e.part", 0),
    ] {
        put(root, name, second);
    }
    put(root, &"l".repeat(181), 0);
    put(root, "x.answer.json", 0);
    fs::create_dir(root.join("folder")).unwrap();
    symlink(root.join("c.json"), root.join("link")).unwrap();
    let mut folder = Folder::open(root).unwrap();
    let taken = folder.take().unwrap();
    assert_eq!(names(&taken), ["c.json", "a.json", "b.json"]);
    assert_eq!(
        names(&folder.take().unwrap()),
        ["c.json", "a.json", "b.json"],
        "what was taken is not enqueued yet, so it comes again"
    );
    for name in &taken {
        fs::remove_file(folder.taking().join(name)).unwrap();
    }
    assert!(folder.take().unwrap().is_empty());
    for name in [".hidden", "d.tmp", "e.part", "x.answer.json", "folder", "link"] {
        assert!(root.join(name).symlink_metadata().is_ok(), "{name}");
    }
}

#[test]
fn a_directory_has_one_relay() {
    let root = tempfile::tempdir().unwrap();
    let first = Folder::open(root.path()).unwrap();
    let told = Folder::open(root.path()).unwrap_err().to_string();
    assert!(told.contains("another relay watches it"), "{told}");
    drop(first);
    Folder::open(root.path()).unwrap();
    let told = Folder::open(&root.path().join("none")).unwrap_err().to_string();
    assert!(told.contains("is no directory"), "{told}");
}

#[test]
fn many_files_are_taken_in_their_order() {
    let root = tempfile::tempdir().unwrap();
    for n in 0..3_000_u64 {
        // The latest come first by name.
        put(root.path(), &format!("{:04}", 3_000 - n), n);
    }
    let mut folder = Folder::open(root.path()).unwrap();
    let mut all = Vec::new();
    loop {
        let taken = folder.take().unwrap();
        if taken.is_empty() {
            break;
        }
        for name in &taken {
            fs::remove_file(folder.taking().join(name)).unwrap();
        }
        all.extend(taken);
    }
    let expected: Vec<OsString> = (0..3_000).map(|n| format!("{:04}", 3_000 - n).into()).collect();
    assert_eq!(all, expected);
}

#[test]
fn a_list_that_missed_a_file_takes_nothing_behind_it() {
    let list = |files: &[(u64, &str)]| -> Vec<Found> {
        files
            .iter()
            .map(|(second, name)| (UNIX_EPOCH + Duration::from_secs(*second), (*name).into()))
            .collect()
    };
    let next = |first: &[(u64, &str)], second: &[(u64, &str)]| surely_next(&list(first), list(second));
    let two = [(1, "a"), (3, "c")];
    assert_eq!(names(&next(&two, &two)), ["a", "c"]);
    assert_eq!(names(&next(&two, &[(1, "a"), (2, "b"), (3, "c")])), ["a"]);
    assert_eq!(names(&next(&two, &[(1, "a"), (3, "c"), (4, "d")])), ["a", "c"]);
    assert_eq!(
        names(&next(&two, &[(3, "c")])),
        ["c"],
        "its program took the first one back"
    );
    assert!(
        next(&two, &[(2, "a"), (3, "c")]).is_empty(),
        "another file of that name"
    );
}

/// A directory that is large is listed in parts, between which files are renamed into it.
#[test]
fn no_file_is_taken_before_one_that_was_renamed_earlier() {
    const FILES: usize = 3_000;
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for n in 0..10_000 {
        File::create(root.join(format!(".old{n}.tmp"))).unwrap();
    }
    let mut folder = Folder::open(root).unwrap();
    let mut all = Vec::new();
    std::thread::scope(|threads| {
        let program = threads.spawn(|| {
            for n in 0..FILES {
                fs::write(root.join(".next"), "{}").unwrap();
                fs::rename(root.join(".next"), root.join(format!("{n:05}"))).unwrap();
            }
        });
        let mut looks_after = 0;
        // Two looks after the last rename find everything, and more of them what one batch does not hold.
        while looks_after < 20 {
            looks_after += usize::from(program.is_finished());
            let taken = folder.take().unwrap();
            for name in &taken {
                fs::remove_file(folder.taking().join(name)).unwrap();
            }
            all.extend(taken);
        }
    });
    let expected: Vec<OsString> = (0..FILES).map(|n| format!("{n:05}").into()).collect();
    assert_eq!(all, expected);
}

#[test]
fn a_name_that_is_taken_gets_a_tag_and_an_answer_that_was_cut_off_is_its_own() {
    let root = tempfile::tempdir().unwrap();
    let folder = Folder::open(root.path()).unwrap();
    let finish = |content: &str| {
        fs::write(folder.taking().join("a.json"), content).unwrap();
        folder
            .finish(
                &folder.taking().join("a.json"),
                End::Done,
                "k1",
                |name| format!("answer to {}", name.display()).into_bytes(),
                |text| text == b"cut off",
            )
            .unwrap()
    };
    let done = root.path().join("done");
    fs::write(answer_of(&done.join("a.json")), "cut off").unwrap();
    assert_eq!(finish("1"), "a.json");
    assert_eq!(
        fs::read_to_string(answer_of(&done.join("a.json"))).unwrap(),
        "answer to a.json"
    );
    assert_eq!(finish("2"), "a.k1.json");
    assert_eq!(finish("3"), "a.k1-2.json");
    // Somebody took the file away and left its answer.
    fs::remove_file(done.join("a.json")).unwrap();
    assert_eq!(finish("4"), "a.k1-3.json");
    assert_eq!(fs::read_to_string(done.join("a.k1-2.json")).unwrap(), "3");
    assert_eq!(
        fs::read_dir(&done).unwrap().count(),
        7,
        "four answers, three files, no left-over"
    );
    assert_eq!(
        fs::read_dir(folder.taking()).unwrap().count(),
        0,
        "all of them were moved"
    );
}

#[test]
fn files_of_one_name_wait_side_by_side() {
    let root = tempfile::tempdir().unwrap();
    let folder = Folder::open(root.path()).unwrap();
    for content in ["1", "2"] {
        fs::write(folder.taking().join("a.json"), content).unwrap();
        folder.to_sending(OsStr::new("a.json"), "k1").unwrap();
    }
    assert_eq!(names(&folder.waiting("k1").unwrap()), ["a.1.json", "a.json"]);
    assert!(folder.waiting("k2").unwrap().is_empty());
}
